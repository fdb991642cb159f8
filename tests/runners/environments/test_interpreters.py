"""The search for CPythons of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runners.core.errors import InfraError
from runners.environments import interpreters
from runners.environments.interpreters import PREFERRED


def test_chosen_interpreter_runs_and_has_its_minor() -> None:
    """The description matches the output of the interpreter."""
    found = interpreters.choose_interpreter(PREFERRED)
    code = "import sys; print('%d.%d' % sys.version_info[:2], sys.base_prefix)"
    said = subprocess.run([found.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == [found.version, str(found.prefix)]


def test_missing_minors_name_the_remedy() -> None:
    """The message has the minors and a way to get one."""
    with pytest.raises(InfraError, match=r"no CPython .* on this machine: install one"):
        interpreters.choose_interpreter(["2.6"])


def test_program_that_is_no_python_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program on PATH with an interpreter's name does not stop the search."""
    fake = tmp_path / "python3.11"
    fake.write_text("#!/bin/sh\necho not python\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    interpreters.find_interpreter.cache_clear()
    try:
        found = interpreters.find_interpreter("3.11")
    finally:
        interpreters.find_interpreter.cache_clear()
    assert found is None or found.executable != fake
