"""What the papers say of the code is true: their links, the rooms and commands they name, what the lock holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
import yaml

from bot.cli.app import app
from bot.verdict.verdict import VerdictKind

ROOT = Path(__file__).parent.parent
PAPERS = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    *(f"docs/{p.name}" for p in ROOT.glob("docs/*") if p.suffix in (".md", ".json")),
]
ROOMS = ["docs/architecture.md", "CONTRIBUTING.md", "SECURITY.md"]


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("paper", PAPERS)
def test_every_link_leads_somewhere(paper: str) -> None:
    """A relative link names a file that is there."""
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", _read(paper))
    assert [link for link in links if not (ROOT / paper).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("paper", ROOMS)
def test_every_room_that_is_named_is_there(paper: str) -> None:
    """A path in the papers exists; a bare ``name.py`` after one stands in the same folder."""
    assert [place for place in _places(_read(paper)) if not (ROOT / place).exists()] == []


def test_the_architecture_names_every_folder() -> None:
    """Each folder of ``bot`` and ``runners`` has its line in docs/architecture.md."""
    text = _read("docs/architecture.md")
    folders = [face.parent.name for ring in ("bot", "runners") for face in (ROOT / ring).glob("*/__init__.py")]
    assert [name for name in folders if f"{name}/" not in text] == []


def _places(text: str) -> Iterator[Path]:
    folder = Path()
    for path in re.findall(r"`(?!/)([\w./]+(?:\.py|/|\.json))`", text):  # with a / first, one inside the sandbox
        whole = "/" in path.rstrip("/")
        folder = Path(path).parent if whole else folder
        yield Path(path) if whole or (ROOT / path).exists() else folder / path


def test_the_readme_lists_every_command() -> None:
    """What ``reprobot --help`` knows is in the table, and the table names nothing else."""
    listed = set(re.findall(r"^\| `reprobot (\w+)", _read("README.md"), re.MULTILINE))
    known = set(getattr(typer.main.get_command(app), "commands", {}))
    assert listed == known


def test_the_readme_shows_the_workflow_and_its_inputs_and_outputs() -> None:
    """The file to copy is the tested example; the tables have the names of the called workflow."""
    readme = _read("README.md")
    assert f"```yaml\n{_read('examples/workflows/cpu.yml')}```" in readme
    called = yaml.safe_load(_read(".github/workflows/reproduce.yml"))[True]["workflow_call"]
    tables = dict(re.findall(r"\| (input|output)[^\n]*\n\| --- \| --- \|\n((?:\|[^\n]*\n)+)", readme))
    for kind, table in tables.items():
        assert re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE) == list(called[f"{kind}s"])
    assert set(tables) == {"input", "output"}


def test_every_verdict_is_explained_to_readers() -> None:
    listed = re.findall(r"^\| `([a-z-]+)`", _read("docs/read-a-verdict.md"), re.MULTILINE)
    assert set(listed) == {str(kind) for kind in VerdictKind}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements.run.lock"])
def test_a_lock_holds_names_versions_and_hashes_only(name: str) -> None:
    """No address of an index or a file, and nothing without a hash."""
    lock = _read(name)
    assert not re.search(r"https?:|file:|^-", lock, re.MULTILINE)
    pins = re.findall(r"^[\w.-]+==\S+(?: ;[^\\]+)? \\\n +--hash=sha256:", lock, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^[\w.-]+", lock, re.MULTILINE)) > 30


def test_what_runs_for_users_is_what_was_tested() -> None:
    """What the action and the images install is a part of what the tests run with, pin for pin and hash for hash."""
    whole, part = (
        set(re.split(r"\n(?=\S)", _read(name).strip())) for name in ("requirements.lock", "requirements.run.lock")
    )
    assert part - whole == set()
    assert not any(pin.startswith(("pytest", "mypy", "hypothesis")) for pin in part)
