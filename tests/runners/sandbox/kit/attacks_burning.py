"""Attacks on processor time: by one process, by a tree, and by children that their parent does not wait for."""

from __future__ import annotations

from runners.core.protocol import Ended, Limits, TimedOut
from tests.runners.sandbox.kit.attack import MIB, Attack, anything, signalled, timed_out

BURNING = Limits(wall_s=15, cpu_s=0.8, memory_bytes=192 * MIB, processes=48, disk_bytes=24 * MIB)
"""Little processor time and a long wall time: an attack that ends by the wall time was not counted."""


def used_up(ended: Ended) -> bool:
    return timed_out(ended) and isinstance(ended, TimedOut) and ended.clock == "processor"


PROCESSOR_TIME = (
    Attack(name="burn-in-one-process", source="while True: pass\n", ended=used_up, check=anything, limits=BURNING),
    Attack(
        name="burn-in-a-tree",
        counts_all=True,
        source="""
for _ in range(5):
    os.fork()
try:
    os.setsid()
except OSError:
    pass  # the first of them leads a session already
while True: pass
""",
        ended=used_up,
        check=anything,
        limits=BURNING,
    ),
    Attack(
        # A parent that ignores the end of its children does not get their time: only the group's counter has it.
        name="burn-in-children-that-die-unseen",
        counts_all=True,
        source="""
import signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.1
        while time.process_time() < end: pass
        os._exit(0)
    time.sleep(0.05)
""",
        ended=used_up,
        check=anything,
        limits=BURNING,
    ),
    Attack(
        name="burn-and-say-so",
        source="""
import sys
print('{"step": {"used_up": true, "timed_out": true}}\\nprocessor time used up', file=sys.stderr)
os.kill(os.getpid(), 24)
import time
time.sleep(5)
""",
        ended=signalled(24),
        check=anything,
    ),
)
