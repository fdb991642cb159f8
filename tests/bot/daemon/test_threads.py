"""The daemon answers several deliveries and runs at a time: two threads may read one shape for the first time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# msgspec 0.22 prepares a shape at the first use, without a lock: two threads that meet there crash the interpreter.
# The short switch interval makes threads meet. Thirty copies of the shape crashed each of twenty
# processes.
PROGRAM = """
import importlib
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec

import bot.forge.payloads

sys.setswitchinterval(1e-6)
THREADS = 8
EVENT = b'{"action": "opened", "repository": {"full_name": "a/b"}, "sender": {"login": "x", "type": "User"}}'
barrier = threading.Barrier(THREADS)


def decode(shape):
    barrier.wait(30)
    msgspec.json.decode(EVENT, type=shape)


for _ in range(30):
    shape = importlib.reload(bot.forge.payloads).Event
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(decode, [shape] * THREADS))
print("all were read")
"""


@pytest.mark.thorough
def test_threads_may_read_a_shape_for_the_first_time_together(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        (sys.executable, program),
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "all were read\n", "")
