"""Recorded runs: extraction, planning and judging over real outputs, in seconds and without a compiler.

A recording is a line of JSON: the key of a request, which of several equal requests it answers, and the result. Files
are compressed, one per story (``bench/proving/recordings/SET/STORY.jsonl.xz``). Each line carries the digests of the
testcase, of the guest programs and, in the result, of the environment, so that a stale recording can be told.
"""

from __future__ import annotations

import lzma
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from runners.core.protocol import NotRun, StepResult, digest_of
from runners.core.runs import Execute, Recording, RunRequest, RunResult, report_not_run
from runners.workbench.run_ledger import digest_guest, list_guest_digests

FOLDER = Path(__file__).parent / "recordings"
KEPT_CHARS = 12_000
"""Of each stream at either end: failures speak first or last."""
NOT_RECORDED = "not recorded"


class Recordings:
    """Recorded runs by key and ordinal."""

    def __init__(self, recorded: Iterable[Recording] = ()) -> None:
        self.runs = {(one.key, one.ordinal): one for one in recorded}

    def find(self, key: str, ordinal: int) -> RunResult | None:
        """The run, or the last one of this key: a later run of equal conditions would show no more."""
        for number in range(ordinal, -1, -1):
            if (found := self.runs.get((key, number))) is not None:
                return found.result
        return None

    def add(self, request: RunRequest, ordinal: int, result: RunResult) -> None:
        self.runs[request.key, ordinal] = Recording(
            key=request.key,
            ordinal=ordinal,
            version=request.version,
            testcase=digest_of(request.testcase),
            guest=digest_guest(request.testcase),
            date=datetime.now(UTC).date().isoformat(),
            result=msgspec.structs.replace(result, steps=tuple(map(_trim, result.steps))),
        )

    def list_stale(self) -> list[Recording]:
        """Recordings made with other guest programs than today's."""
        return [one for one in self.runs.values() if one.guest not in list_guest_digests()]


def _trim(step: StepResult) -> StepResult:
    return msgspec.structs.replace(step, stdout=_cut_middle(step.stdout), stderr=_cut_middle(step.stderr))


def _cut_middle(text: str) -> str:
    if len(text) <= 2 * KEPT_CHARS:
        return text
    return f"{text[:KEPT_CHARS]}\n[…]\n{text[-KEPT_CHARS:]}"


def load(name: str, folder: Path = FOLDER) -> Recordings:
    """The recordings of all stories of a set; none if the folder does not exist."""
    paths = sorted((folder / name).rglob("*.jsonl.xz"))
    return Recordings(one for path in paths for one in _read(path))


def load_story(name: str, story: str, folder: Path = FOLDER) -> Recordings:
    """The recordings of one story of a set; none if there is no file."""
    path = _find_file(name, story, folder)
    return Recordings(_read(path) if path.exists() else ())


def _find_file(name: str, story: str, folder: Path) -> Path:
    return folder / name / f"{story}.jsonl.xz"


def _read(path: Path) -> Iterator[Recording]:
    with lzma.open(path, "rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=Recording)


def save_story(name: str, story: str, recordings: Recordings, folder: Path = FOLDER) -> Path:
    """Write the recordings of one story, sorted, whole or not at all."""
    path = _find_file(name, story, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with lzma.open(part, "wb", preset=6) as lines:
        for _, one in sorted(recordings.runs.items()):
            lines.write(msgspec.json.encode(one) + b"\n")
    part.replace(path)
    return path


class Replay:
    """Answers requests from recordings. A request that is not recorded goes to ``live``, or is reported as not run.

    One replay serves one investigation: it counts equal requests.
    """

    def __init__(self, recordings: Recordings, live: Execute | None = None) -> None:
        self.recordings = recordings
        self.live = live
        self.missing: list[RunRequest] = []
        self.recorded = 0
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: RunRequest) -> RunResult:
        key = request.key
        with self._lock:
            ordinal = self._counts[key]
            self._counts[key] += 1
        found = self.recordings.find(key, ordinal)
        if found is not None and (self.live is None or (key, ordinal) in self.recordings.runs):
            return found
        if self.live is None:
            self.missing.append(request)
            return report_not_run(NotRun(why=f"{NOT_RECORDED}: {request.version}", cause="infra"))
        result = self.live(request)
        if not (isinstance(result.ended, NotRun) and result.ended.cause == "infra"):
            with self._lock:
                self.recordings.add(request, ordinal, result)
                self.recorded += 1
        return result
