"""Folders that a testcase filled are removed, whatever is in them. No engine is needed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from runners.sandbox import owner
from runners.sandbox.select import remove_leftovers
from tests.runners.sandbox.conftest import name_of

DEPTH = 3000
"""More folders than Python's stack has frames, and a path longer than the kernel accepts."""


def fill(folder: Path) -> None:
    """Nest folders, forbid one, and link to a file outside."""
    outside = folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "file").write_text("stays")
    (folder / "link").symlink_to(outside)
    (folder / "locked" / "inside").mkdir(parents=True)
    (folder / "locked").chmod(0)
    here = os.open(folder, os.O_RDONLY)
    try:
        for _ in range(DEPTH):
            os.mkdir("a-long-name", dir_fd=here)
            deeper = os.open("a-long-name", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = deeper
    finally:
        os.close(here)


@pytest.mark.thorough
def test_private_directory_of_any_depth_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing outside is touched."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with owner.open_private_directory() as folder:
        fill(folder)
    assert not folder.exists()
    assert (tmp_path / "outside" / "file").read_text() == "stays"


@pytest.mark.thorough
def test_leftover_of_any_depth_does_not_stop_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clean-up of leftovers comes first in every run: an error there would stop all later runs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    leftover = tmp_path / name_of(start=1)
    leftover.mkdir()
    fill(leftover)
    assert f"directory {leftover}" in remove_leftovers()
    assert not leftover.exists()
