"""Kill the daemon at random moments: ``python -m bench.robustness.watch_kills [KILLS [SEED]]``.

The daemon answers an opened issue and a command on the fake forge. It is killed up to five times with SIGKILL, at
random moments, and started again. In the end the issue must look as without a kill: one answer, one reply, one run,
the same labels.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.bot.daemon import process as daemon
from tests.bot.daemon.test_watch import Killer, asked, outcome
from tests.bot.forge.fake import FakeGithub

MAX_KILLS = 5
LONGEST_S = 2.5


def play(seed: int) -> tuple[int, object]:
    """Return the number of kills that hit a running daemon, and the issue in the end."""
    chance, hits = random.Random(seed), 0
    context = multiprocessing.get_context("forkserver")
    with FakeGithub() as github, tempfile.TemporaryDirectory() as name:
        state = Path(name)
        asked(github, state)
        for _ in range(chance.randint(0, MAX_KILLS) if seed else 0):
            arguments = (github.environment(), name, 0, "")
            process = context.Process(target=daemon.run_until_killed, args=arguments)
            process.start()
            time.sleep(chance.uniform(0, LONGEST_S))
            hits += process.is_alive()
            process.kill()
            process.join()
        if Killer(github, state).run() != 0:
            return hits, "the daemon failed after the kills"
        return hits, outcome(github)


def main(kills: int, seed: int) -> int:
    """Print each difference. Return the exit status."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(["tests.bot.daemon.process"])
    _, wanted = play(0)
    hits = faults = trials = 0
    while hits < kills:
        trials += 1
        seed += 1
        hit, found = play(seed)
        hits += hit
        if found != wanted:
            faults += 1
            sys.stdout.write(f"seed {seed}: {found}\n")
    sys.stdout.write(f"{trials} trials, {hits} kills, {faults} with another end\n")
    return 1 if faults else 0


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*[*words, *(500, 7000)[len(words) :]]))
