"""CPythons of this machine: found, described, chosen."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runners.core.errors import InfraError
from runners.environments import interpreters
from runners.environments.interpreters import PREFERRED


def test_there_is_one_and_it_is_what_it_says() -> None:
    """The interpreter found runs, and is of the minor that was asked for."""
    found = interpreters.choose(PREFERRED)
    code = "import sys; print('%d.%d' % sys.version_info[:2], sys.base_prefix)"
    said = subprocess.run([found.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == [found.version, str(found.prefix)]


def test_none_fits() -> None:
    """Said with the minors that would do, and how to get one."""
    with pytest.raises(InfraError, match=r"no CPython .* on this machine: install one"):
        interpreters.choose(["2.6"])


def test_a_program_that_is_no_python_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something on PATH that is called like an interpreter and isn't does not stop the search."""
    fake = tmp_path / "python3.11"
    fake.write_text("#!/bin/sh\necho not python\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    interpreters.find.cache_clear()
    try:
        found = interpreters.find("3.11")
    finally:
        interpreters.find.cache_clear()
    assert found is None or found.executable != fake
