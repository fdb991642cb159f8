"""The table of grounds in docs/verdicts.md, from the model: ``python -m tests.bot.verdict.grounds_table``."""

from __future__ import annotations

from bot.verdict.grounds import MEANINGS, load_weights
from tests.bot.verdict.verdict_table import DOCUMENT

BEGIN, END = "<!-- made by tests/bot/verdict/grounds_table.py: begin -->", "<!-- end of grounds -->"


def make_table() -> str:
    model = load_weights()
    lines = [
        model.provenance,
        "",
        "| ground | means | weight | stories |",
        "| --- | --- | --: | --: |",
        f"| | every verdict | {model.intercept:+.2f} | |",
    ]
    return "\n".join(
        [
            *lines,
            *(
                f"| `{ground}` | {meaning} | {model.grounds[ground].weight:+.2f} | {model.grounds[ground].stories} |"
                for ground, meaning in MEANINGS.items()
            ),
        ]
    )


def insert_grounds(text: str) -> str:
    """The document with the table between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{make_table()}\n\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(insert_grounds(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
