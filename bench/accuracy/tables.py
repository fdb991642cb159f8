"""What `bench.accuracy` prints: tables over cases that ran, from records alone. Pure.

``strictly right`` is the verdict found by hand, and nothing else. ``accepted`` adds the verdicts that the case wrote
down beforehand as equally true. ``wrong`` is neither of them, and not ``inconclusive``, which claims nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

SURE = 0.9
BANDS = ((0.95, 1.01), (SURE, 0.95), (0.8, SURE), (0.6, 0.8), (0.0, 0.6))
"""Confidence from, and below which; the judge gives no verdict under .6."""
COMPILER_BUG = frozenset({"regression", "confirmed", "fixed"})
"""Verdicts that say the compiler is, or was, at fault."""


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """One case: what was found by hand beside what the run came to. ``--json`` writes these."""

    name: str
    bullets: tuple[str, ...] = ()
    wanted: str
    accepted: tuple[str, ...]
    debatable: bool = False
    """The case says why the verdict found by hand can be doubted."""
    got: str
    confidence: float
    headline: str = ""
    seconds: float = 0.0
    cells: tuple[tuple[str, str, str], ...] = ()
    """Release, outcome by hand, outcome of the run."""

    @property
    def strict(self) -> bool:
        return self.got == self.wanted

    @property
    def right(self) -> bool:
        return self.got in (self.wanted, *self.accepted)

    @property
    def wrong(self) -> bool:
        """Inconclusive is no answer, and so no wrong one."""
        return not self.right and self.got != "inconclusive"

    @property
    def wrong_cells(self) -> tuple[tuple[str, str, str], ...]:
        return tuple(cell for cell in self.cells if cell[1] != cell[2])


def line(result: Scored) -> str:
    """One case in one line."""
    mark = "right" if result.strict else "ok" if result.right else "WRONG" if result.wrong else "unsure"
    wanted = "" if result.strict else f" (by hand: {result.wanted})"
    cells = "".join(f"; {version}: {got}, not {want}" for version, want, got in result.wrong_cells)
    return f"{mark:6} {result.name}: {result.got} {result.confidence:.2f}{wanted}{cells}"


def report(results: Sequence[Scored]) -> str:
    """Every table, as Markdown."""
    if not results:
        return "no case ran"
    parts = (
        ("Verdicts", _verdicts(results)),
        ("Reliability", _reliability(results)),
        ("By hand → verdict", _confusion((r.wanted, r.got) for r in results)),
        (
            "Outcomes per release, by hand → run",
            _confusion((want, got) for r in results for _, want, got in r.cells),
        ),
        ("Groups", _groups(results)),
    )
    return "\n\n".join(f"{title}\n\n" + "\n".join(rows) for title, rows in parts)


def failed(results: Iterable[Scored]) -> bool:
    """A wrong verdict given with confidence of at least ``SURE``."""
    return any(result.wrong and result.confidence >= SURE for result in results)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({part / whole:.1%})" if whole else "")


def _verdicts(results: Sequence[Scored]) -> Iterator[str]:
    total, sure = len(results), [r for r in results if r.confidence >= SURE]
    cells = [cell for r in results for cell in r.cells]
    yield f"- strictly right: {_share(sum(r.strict for r in results), total)}"
    if doubted := [r for r in results if r.debatable]:
        firm = [r for r in results if not r.debatable]
        yield (
            f"- strictly right without the {len(doubted)} whose truth is debatable:"
            f" {_share(sum(r.strict for r in firm), len(firm))}"
        )
    yield f"- right or accepted: {_share(sum(r.right for r in results), total)}"
    silent = sum(r.got == "inconclusive" and not r.strict for r in results)
    yield f"- inconclusive where more was known by hand: {silent}"
    yield f"- wrong: {sum(r.wrong for r in results)}"
    yield (
        f"- at confidence ≥ {SURE}: {_share(sum(r.strict for r in sure), len(sure))} strictly right,"
        f" {sum(r.right and not r.strict for r in sure)} accepted, {sum(r.wrong for r in sure)} wrong"
    )
    yield f"- outcomes per release as by hand: {_share(sum(want == got for _, want, got in cells), len(cells))}"
    yield f"- seconds for one case: median {sorted(r.seconds for r in results)[total // 2]:.1f}"


def _reliability(results: Sequence[Scored]) -> Iterator[str]:
    """How often what was said with a confidence was so; ``inconclusive`` claims nothing and stands apart."""
    yield "| confidence | cases | mean confidence | strictly right | right or accepted | wrong |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for least, below in BANDS:
        inside = [r for r in results if least <= r.confidence < below and r.got != "inconclusive"]
        if inside:
            upper = "1" if below > 1 else f"{below:.2f}"
            yield (
                f"| {least:.2f} … {upper} | {len(inside)} | {sum(r.confidence for r in inside) / len(inside):.2f}"
                f" | {sum(r.strict for r in inside) / len(inside):.2f}"
                f" | {sum(r.right for r in inside) / len(inside):.2f} | {sum(r.wrong for r in inside)} |"
            )
    silent = [r for r in results if r.got == "inconclusive"]
    if silent:
        mean = sum(r.confidence for r in silent) / len(silent)
        strict = sum(r.strict for r in silent) / len(silent)
        right = sum(r.right for r in silent) / len(silent)
        yield f"| inconclusive | {len(silent)} | {mean:.2f} | {strict:.2f} | {right:.2f} | 0 |"


def _confusion(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    counted = Counter(pairs)
    columns = sorted({name for pair in counted for name in pair})
    yield "| | " + " | ".join(columns) + " |"
    yield "| --- |" + " --- |" * len(columns)
    for row in sorted({wanted for wanted, _ in counted}):
        yield f"| {row} | " + " | ".join(str(counted[row, column] or "") for column in columns) + " |"


def _groups(results: Sequence[Scored]) -> Iterator[str]:
    """The two groups that must never be put on the compiler."""
    drifted = [r for r in results if "api-drift" in r.bullets]
    invalid = [r for r in results if r.wanted == "invalid-repro"]
    for name, group in (("repros at fault themselves", invalid), ("repros of another API", drifted)):
        blamed = [r.name for r in group if r.got in COMPILER_BUG and r.got not in (r.wanted, *r.accepted)]
        yield (
            f"- {name}: {len(group)}, of them {sum(r.strict for r in group)} strictly right,"
            f" {len(blamed)} put on the compiler{': ' + ', '.join(blamed) if blamed else ''}"
        )
