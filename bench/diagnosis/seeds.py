"""The five reports the project began with, end to end: ``python -m bench.diagnosis.seeds``.

Each was modelled on an issue for which maintainers found the cause by hand; the table says whether the product found
the same: verdict, findings, releases. Exits with 1 when anything is missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "issues"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Seed:
    """``wanted``: what maintainers found, in words → whether a document shows it."""

    issue: str
    verdicts: tuple[str, ...]
    wanted: Mapping[str, Callable[[Json], bool]]


def finding(document: Json, kind: str) -> Json:
    """The evidence of the first finding of a kind, with its summary; empty when there is none."""
    return next(
        ({**one["evidence"], "summary": one["summary"]} for one in document["findings"] if one["kind"] == kind), {}
    )


def outcomes(document: Json, device: str, *, variant: str | None = None) -> dict[str, str]:
    """Version → outcome on a device; of several runs the last."""
    return {
        one["version"]: one["outcome"]
        for one in document["observations"]
        if one["device"] == device and variant in (None, one["variant"])
    }


def _wrong_on_every_backend(document: Json) -> bool:
    for device in ("llvm-cpu", "vmvx", "vulkan"):
        seen = outcomes(document, device)
        if [seen.get(v) for v in ("3.4.0", "3.5.0")] != ["match", "match"] or seen.get("3.6.0") in (None, "match"):
            return False
    return True


SEEDS = (
    Seed(
        "take-columns-reordered",
        ("invalid-repro",),
        {
            "index range": lambda d: finding(d, "out-of-bounds-access").get("outside_range") == [12, 15],
            "operator": lambda d: finding(d, "out-of-bounds-access").get("operator") == "relax.take",
        },
    ),
    Seed(
        "unused-outputs-replaced-by-nan",
        ("fixed",),
        {
            "values replaced by NaN": lambda d: finding(d, "values-replaced").get("constants") == ["NaN"],
            "NaN unequal to itself": lambda d: bool(finding(d, "nan-inequality")),
        },
    ),
    Seed(
        "rocm-column-lands-in-first-row",
        ("untestable", "fixed"),
        {
            "wrong on three backends at 3.4.0 and 3.5.0, not from 3.6.0": _wrong_on_every_backend,
            "the dispatch": lambda d: "dispatch" in json.dumps(d["findings"]),
        },
    ),
    Seed(
        "lifted-params-shape-mismatch",
        ("invalid-repro",),
        {
            "the call that works": lambda d: bool(finding(d, "signature-changed").get("call_that_works")),
            "with it, no difference": lambda d: finding(d, "signature-changed").get("control_end") == "failure-gone",
        },
    ),
    Seed(
        "device-hints-left-in-sequential",
        ("fixed",),
        {
            "the mutating pass": lambda d: finding(d, "input-mutated").get("pass") == "RealizeVDevice",
            "order, not kind of call": lambda d: "in whichever way" in finding(d, "input-mutated").get("summary", ""),
        },
    ),
)


def main() -> int:
    lacking = 0
    sys.stdout.write("| issue | verdict | as maintainers found | s |\n| --- | --- | --- | --- |\n")
    for seed in SEEDS:
        began = time.monotonic()
        document = reproduce(seed.issue)
        verdict = document["verdict"]["kind"]
        told = {words: shown(document) for words, shown in seed.wanted.items()}
        lacking += list(told.values()).count(False) + (verdict not in seed.verdicts)
        cells = "; ".join(f"{words}: {'yes' if held else 'NO'}" for words, held in told.items())
        sys.stdout.write(f"| {seed.issue} | {verdict} | {cells} | {time.monotonic() - began:.1f} |\n")
        sys.stdout.flush()
    return int(lacking > 0)


def reproduce(issue: str) -> Json:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        words = [sys.executable, "-m", "bot", "reproduce", str(EXAMPLES / f"{issue}.md"), "--json", str(out)]
        subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
        found: Json = json.loads(out.read_text())
        return found


if __name__ == "__main__":
    sys.exit(main())
