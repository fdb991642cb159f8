"""The table of attacks and engines in docs/sandbox-kit.md: ``python -m tests.runners.sandbox.kit.table`` writes it.

A cell says what the tests require of that attack on that engine.
"""

from __future__ import annotations

from pathlib import Path

from tests.runners.sandbox import test_sessions
from tests.runners.sandbox.containers.test_gvisor import OTHER_KERNEL, SPENT
from tests.runners.sandbox.kit.attacks import ATTACKS

PAPER = Path(__file__).parents[4] / "docs" / "sandbox-kit.md"
START, END = "<!-- attacks -->\n", "<!-- /attacks -->\n"


def render_table() -> str:
    """Return one row for each attack of the kit and for each attack on a session."""
    rows = [
        ("attack", "docker, podman", "bubblewrap", "gVisor"),
        ("---",) * 4,
        *(
            (attack.name, "yes", "counted" if attack.counts_all else "yes", _tell_gvisor(attack.name))
            for attack in ATTACKS
        ),
        *((f"sessions:{name}", "yes", "yes", "no sessions") for name in test_sessions.ATTACKS),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _tell_gvisor(name: str) -> str:
    if name in OTHER_KERNEL:
        return f"other: {OTHER_KERNEL[name]}"
    return "yes, by another limit" if name in SPENT else "yes"


def read_table() -> str:
    return PAPER.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]


if __name__ == "__main__":
    text = PAPER.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    PAPER.write_text(before + START + render_table() + END + rest.partition(END)[2], encoding="utf-8")
