"""Keep the state that outlives a step: the pipe for ended children, and the zygotes of a session.

Only the supervisor imports this module.
"""

from __future__ import annotations

import os

from runners.guest.probe import cleaning
from runners.guest.probe.processes import has_step_user, reap_all, reap_except
from runners.guest.probe.streams import Wakeups

TYPE_CHECKING = False  # every probe pays for each import here
if TYPE_CHECKING:
    from runners.guest.probe.forking import Zygotes
    from runners.guest.probe.processes import WaitResult


def open_zygotes(scratch: list[str]) -> Zygotes:
    from runners.guest.probe.forking import Zygotes  # lazy: only a session of several jobs needs it

    return Zygotes(scratch)


class SupervisorSession:
    """The state of one or more jobs: the connection to the host, notices of ended children, and the zygotes.

    ``scratch`` contains the writable folders; None means a single job. Only process 1 has zygotes, because only it
    can spare a zygote and ensure that no other process lives. There are none if steps have their own user, because
    being undumpable does not protect a zygote then.
    """

    def __init__(self, host: int, scratch: list[str] | None) -> None:
        self.host = host
        self.wakeups = Wakeups()
        self.scratch = [] if scratch is None else scratch
        spares = scratch is not None and os.getpid() == 1 and not has_step_user()
        self.zygotes = open_zygotes(self.scratch) if spares else None
        self.state = cleaning.read_state([os.getpid()], self.scratch)

    def end_processes(self, child: int | None, ended: WaitResult | None) -> WaitResult | None:
        """Kill and collect every process except the zygotes. Return how ``child`` ended."""
        if self.zygotes is None or not self.zygotes.alive:
            return reap_all(child, ended)
        return reap_except(self.zygotes.pids, child, ended)

    def prepare_next_job(self) -> str:
        """Clean up after a job. Return why this sandbox cannot accept another job. Empty if it can."""
        if self.zygotes is None:
            return "this is not process 1, or the steps have a user of their own"
        self.zygotes.close_dead()
        try:
            cleaning.empty_folders(self.scratch)
            state = cleaning.read_state([os.getpid()], self.scratch)
            zygotes = {cleaning.read_state([pid], self.scratch) for pid in self.zygotes.pids}
        except (cleaning.CannotClean, OSError) as error:
            return str(error)[:500]
        if zygotes | {state} != {self.state}:
            return "priority, processors or scheduling were changed from inside"
        found = cleaning.list_queues() + cleaning.list_ports()
        return f"left behind: {found[0][:200]}" if found else ""

    def close(self) -> None:
        if self.zygotes is not None:
            self.zygotes.close()
