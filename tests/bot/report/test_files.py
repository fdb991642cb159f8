"""A file of output is the old one or whole, whatever ends the process."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.report.files import write_file
from runners.core.errors import UserError

OLD, NEW = "old\n", "new\n" * 5_000


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file may grow beyond ``size`` bytes: writing fails in the middle, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(OLD)
    with small_files(1_000), pytest.raises(UserError, match=r"answer\.json cannot be written"):
        write_file(path, NEW)
    assert path.read_text() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """The draft of the killed process is gone after the next one."""
    path = tmp_path / "answer.json"
    path.write_text(OLD)
    for delay_us in range(0, 2_000, 100):
        child = os.fork()
        if child == 0:
            while True:
                write_file(path, NEW)
        threading.Event().wait(delay_us / 1e6)
        os.kill(child, 9)
        os.waitpid(child, 0)
        assert path.read_text() in (OLD, NEW)
    write_file(path, OLD)
    assert path.read_text() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_follows_no_link(tmp_path: Path) -> None:
    """Another user may put a link beside the file, in a folder where everybody writes."""
    victim = tmp_path / "victim"
    victim.write_text(OLD)
    (tmp_path / ".answer.json.part").symlink_to(victim)
    write_file(tmp_path / "answer.json", NEW)
    assert victim.read_text() == OLD
    assert (tmp_path / "answer.json").read_text() == NEW


def test_links_and_pipes_are_written_in_place(tmp_path: Path) -> None:
    """``/dev/stdout`` is a link; replaced, the output would go elsewhere. Permissions stay as they are."""
    real, link, pipe = (tmp_path / name for name in ("real", "link", "pipe"))
    real.write_text(OLD)
    real.chmod(0o640)
    link.symlink_to(real)
    write_file(link, NEW)
    assert link.is_symlink()
    assert real.read_text() == NEW
    write_file(real, OLD)
    assert real.stat().st_mode & 0o777 == 0o640
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_file(pipe, NEW)
    reader.join()
    assert read == [NEW]
