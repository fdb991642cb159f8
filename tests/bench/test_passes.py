"""The table of renamed passes, read from a real history."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.surveys.passes import follow_renames, list_renames, read_history

FIRST = """def ConvertThing :
    Pass<"iree-convert-thing", ""> {
  let summary = "Converts.";
}
def Other : Pass<"iree-other"> {
}
"""


def test_chains_of_renames_end_at_a_name_of_the_oldest_release(tmp_path: Path) -> None:
    """A definition may get the suffix Pass meanwhile. A pass that goes while another comes is not renamed."""
    texts = (
        FIRST,
        FIRST.replace('"iree-convert-thing"', '"iree-flow-convert-thing"'),
        FIRST.replace("ConvertThing", "ConvertThingPass").replace('"iree-convert-thing"', '"iree-codegen-thing"'),
        FIRST.replace('def Other : Pass<"iree-other">', 'def New : Pass<"iree-new">').replace(
            '"iree-convert-thing"', '"iree-codegen-thing"'
        ),
    )
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run([*git, "init", "-q"], check=True)
    for number, text in enumerate(texts):
        (tmp_path / "Passes.td").write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", str(number)], check=True)
    renames = list(list_renames(read_history(tmp_path)))
    known = frozenset({"--iree-codegen-thing", "--iree-new"})
    assert follow_renames(renames, known) == {
        "iree-convert-thing": "iree-codegen-thing",
        "iree-flow-convert-thing": "iree-codegen-thing",
    }
