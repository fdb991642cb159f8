"""Kill ``watch``, ``reproduce``, ``sweep`` and probes at random moments: ``python -m bench.robustness --out DIR``.

Every trial is a line in ``DIR/records.jsonl`` as soon as it has ended; its seed tells the trial. A stopped campaign
goes on where it stopped when it is started again with the same folder and seed. At its end, or at SIGINT, a table is
printed and written to ``DIR/summary.md``; ``--kills 0`` does only that. The exit status is 1 if a trial shows a
fault.

The trials run one at a time, in PID and mount namespaces of their own, so root is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from bench.robustness import kills, own_space, verb_kills, watch_kills

SUBJECTS: Mapping[str, int] = {"probe": 4, "reproduce": 2, "sweep": 1, "watch": 1, "steps of watch": 3}
"""Subject → its share of the trials. ``steps of watch`` are the daemon's own steps with canned runs: a comment and a
command, many kills for little time."""
LONGEST_S: Mapping[str, float] = {"reproduce": 4.0, "sweep": 4.0, "watch": 5.0}
ENGINES: Mapping[str, int] = {"bubblewrap": 4, "podman": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A trial that has ended. ``hits``: what was killed; ``faults``: what should not be."""

    subject: str
    engine: str
    seed: int
    hits: tuple[str, ...]
    faults: tuple[str, ...]
    seconds: float


def play(seed: int, folder: Path, engines: Sequence[str]) -> Record:
    """Play the trial of a seed."""
    chance, began = random.Random(f"trial {seed}"), time.monotonic()
    subject = chance.choices(tuple(SUBJECTS), tuple(SUBJECTS.values()))[0]
    engine = chance.choices(engines, [ENGINES[name] for name in engines])[0]
    if subject == "probe":
        outcome = kills.run_trial(kills.make_trial(seed, (engine,)))
        hits, faults = [f"{outcome.trial.victim}: {outcome.hit}"] if outcome.hit else [], list(outcome.left)
    elif subject == "steps of watch":
        engine, (times, end) = "none", watch_kills.play(seed)
        hits, faults = ["command"] * times, [] if end == wanted_end() else [f"{end}, not {wanted_end()}"]
    else:
        place = folder / "trial"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o755)
        trial = verb_kills.Trial(subject, seed, engine, place, folder / "cache", LONGEST_S[subject])
        verb_kills.play(trial)
        hits, faults = trial.hits, trial.faults
        if faults:
            shutil.copytree(place, folder / "faults" / str(seed), dirs_exist_ok=True)
    seconds = round(time.monotonic() - began, 1)
    return Record(subject=subject, engine=engine, seed=seed, hits=tuple(hits), faults=tuple(faults), seconds=seconds)


_ends: list[object] = []


def wanted_end() -> object:
    """Return the end of the daemon's steps without a kill."""
    if not _ends:
        _ends.append(watch_kills.play(0)[1])
    return _ends[0]


def read_records(file: Path) -> Iterator[Record]:
    """Yield the trials in the file. A line that was cut short is played again."""
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                read = json.loads(line)
                yield Record(**{**read, "hits": tuple(read["hits"]), "faults": tuple(read["faults"])})


def _encode(record: Record) -> str:
    return json.dumps(asdict(record)) + "\n"


def summarise(records: Sequence[Record]) -> str:
    """Return the table of all trials, and each fault with its seed."""
    lines = ["| command | engine | trials | kills | of the command | with faults |", "|---|---|---|---|---|---|"]
    for subject in SUBJECTS:
        for engine in sorted({one.engine for one in records if one.subject == subject}):
            mine = [one for one in records if (one.subject, one.engine) == (subject, engine)]
            hits = [hit for one in mine for hit in one.hits]
            own = sum(hit.startswith(("command", "host")) for hit in hits)
            faults = sum(bool(one.faults) for one in mine)
            lines.append(f"| {subject} | {engine} | {len(mine)} | {len(hits)} | {own} | {faults} |")
    total, wrong = sum(len(one.hits) for one in records), [one for one in records if one.faults]
    hours = sum(one.seconds for one in records) / 3600
    lines += ["", f"{len(records)} trials, {total} kills, {len(wrong)} with faults, {hours:.1f} hours"]
    return "\n".join([*lines, *(f"seed {one.seed}, {one.subject}: {'; '.join(one.faults)}" for one in wrong)]) + "\n"


def check_installation() -> None:
    """Refuse an interpreter whose installed Reprobot is another one: ``watch`` and ``sweep`` start children of it."""
    words = [sys.executable, "-I", "-c", "import runners; print(runners.__file__)"]
    found = Path(subprocess.run(words, capture_output=True, text=True, check=True, cwd="/").stdout.strip())
    if found.parents[1] != verb_kills.ROOT:
        raise SystemExit(
            f"{sys.executable} has the Reprobot of {found.parents[1]}: install this one, {verb_kills.ROOT}"
        )


def run(wanted: int, first: int, folder: Path) -> int:
    """Play trials until there are as many kills as wanted."""
    check_installation()
    (folder / "tmp").mkdir(parents=True, exist_ok=True, mode=0o755)
    lock = (folder / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the processes that a trial starts do not inherit it
    except BlockingIOError:
        raise SystemExit(f"another campaign uses {folder}: stop it, or name another folder") from None
    os.environ["TMPDIR"] = str(folder / "tmp")
    file, engines = folder / "records.jsonl", [name for name in kills.usable() if name in ENGINES]
    records = list(read_records(file))
    file.write_text("".join(map(_encode, records)), encoding="utf-8")  # without a line that was cut short
    done = {one.seed for one in records}
    try:
        for seed in (number for number in count(first) if number not in done):
            if sum(len(one.hits) for one in records) >= wanted:
                break
            records.append(play(seed, folder, engines))
            with file.open("a", encoding="utf-8") as opened:
                opened.write(_encode(records[-1]))
            _say(records)
    except KeyboardInterrupt:
        sys.stdout.write("stopped\n")
    summary = summarise(records)
    (folder / "summary.md").write_text(summary, encoding="utf-8")
    sys.stdout.write(f"\n{summary}")
    return int(any(one.faults for one in records))


def _say(records: Sequence[Record]) -> None:
    last, total = records[-1], sum(len(one.hits) for one in records)
    end = "; ".join(last.faults) or "nothing left"
    sys.stdout.write(
        f"{total:4} kills, seed {last.seed}: {last.subject} ({last.engine}), {last.seconds:.0f} s, killed "
        f"{', '.join(last.hits) or 'nothing'}: {end}\n"
    )
    sys.stdout.flush()


def main(words: Sequence[str]) -> int:
    """1 if a trial shows a fault."""
    parser = argparse.ArgumentParser(prog="python -m bench.robustness", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=500, metavar="N", help="stop after so many kills (500)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the first trial (1)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for records and caches")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if not own_space.is_inside(words):
        return own_space.enter("bench.robustness", words)
    own_space.collect_orphans()
    return run(given.kills, given.seed, given.out.absolute())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
