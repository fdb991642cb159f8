"""What outlives a step in the supervisor's process: the way to hear of children, and a session's zygotes.

For the supervisor alone.
"""

from __future__ import annotations

import os

from runners.guest.probe import cleaning
from runners.guest.probe.processes import apart, reap_all, reap_but
from runners.guest.probe.streams import Wakeups

TYPE_CHECKING = False  # as in the supervisor: each import here is a part of every probe
if TYPE_CHECKING:
    from runners.guest.probe.forking import Zygotes
    from runners.guest.probe.processes import Ended


def open_zygotes(places: list[str]) -> Zygotes:
    from runners.guest.probe import forking  # only a session needs it

    return forking.Zygotes(places)


class Session:
    """What outlives a step: the way to hear of children and of the host, and in a session the zygotes.

    ``scratch`` are the places that can be written. Only process 1 can spare a zygote and yet be sure that nothing
    else lives, so that elsewhere there are none; nor where being undumpable protects nobody (``apart``).
    """

    def __init__(self, host: int, scratch: list[str] | None) -> None:
        self.host = host
        self.wakeups = Wakeups()
        self.scratch = [] if scratch is None else scratch
        spares = scratch is not None and os.getpid() == 1 and not apart()
        self.zygotes = open_zygotes(self.scratch) if spares else None
        self.state = cleaning.state_of([os.getpid()], self.scratch)

    def end_all(self, child: int | None, ended: Ended | None) -> Ended | None:
        """Kill and collect everything but the zygotes; returns how ``child`` ended."""
        if self.zygotes is None or not self.zygotes.alive:
            return reap_all(child, ended)
        return reap_but(self.zygotes.pids, child, ended)

    def spent(self) -> str:
        """Make ready for another job; why that can't be done, or empty."""
        if self.zygotes is None:
            return "this is not process 1, or the steps have a user of their own"
        self.zygotes.forget_dead()
        try:
            cleaning.empty(self.scratch)
            state = cleaning.state_of([os.getpid()], self.scratch)
            zygotes = {cleaning.state_of([pid], self.scratch) for pid in self.zygotes.pids}
        except (cleaning.Unclean, OSError) as error:
            return str(error)[:500]
        if zygotes | {state} != {self.state}:
            return "priority, processors or scheduling were changed from inside"
        return f"left behind: {found[0][:200]}" if (found := cleaning.queues()) else ""

    def close(self) -> None:
        if self.zygotes is not None:
            self.zygotes.close()
