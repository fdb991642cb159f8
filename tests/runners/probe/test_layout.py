"""The guest programs are shown with byte code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runners.probe import layout as module
from runners.probe.layout import GUEST, compile_guest

PYTHON = Path(sys.executable).resolve()


def test_python_takes_the_byte_code_that_is_there(tmp_path: Path) -> None:
    """A supervisor's start compiles only the first, small file, and the copy has the same sources."""
    place = compile_guest(GUEST, PYTHON, tmp_path)
    words = [str(PYTHON), "-I", "-S", "-v", str(place / "launch.py"), "probe.supervisor"]
    said = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stderr
    assert f"matches {place}/probe/supervisor.py" in said
    assert f"code object from {place}/" not in said
    assert {path.relative_to(place): path.read_text() for path in place.rglob("*.py")} == {
        path.relative_to(GUEST): path.read_text() for path in GUEST.rglob("*.py")
    }
    assert list(tmp_path.iterdir()) == [place.parent.parent]
    assert place.stat().st_mode & 0o777 == 0o755


def test_a_change_of_the_programs_is_another_folder(tmp_path: Path) -> None:
    """Byte code is not compared with its source, so new sources get a new folder."""
    for number, text in enumerate(("X = 1", "X = 2")):
        source = tmp_path / str(number)
        source.mkdir()
        (source / "one.py").write_text(text)
    first, second = (compile_guest(tmp_path / name, PYTHON, tmp_path / "cache") for name in ("0", "1"))
    assert first != second
    assert (second / "one.py").read_text() == "X = 2"


def test_without_byte_code_the_programs_themselves_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that cannot compile, or a cache that cannot be written, costs time and no probe."""
    monkeypatch.setattr(module, "_compile_copy", lambda *_: (_ for _ in ()).throw(OSError("read-only")))
    assert compile_guest(GUEST, PYTHON, tmp_path) == GUEST
