"""Folders of any depth are measured and removed, and no link in them is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runners.builds.history import open_history
from runners.core.hostile.folders import remove_folder, try_remove_folder
from runners.environments.files import link_tree, measure_disk_bytes
from runners.environments.store import open_store
from runners.sandbox.owner import open_private_directory
from tests.support.repository import make_repository


def make_deep(folder: Path, levels: int = 3000) -> Path:
    """Make folders that are deeper than the stack, and with 3000 levels deeper than a path may be long."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("dd", dir_fd=descriptor)
        below = os.open("dd", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)
    return folder


@pytest.mark.thorough
def test_any_depth_is_removed(tmp_path: Path) -> None:
    """A folder that its owner may not enter is removed too, and the target of a link stays."""
    (tmp_path / "kept" / "file").mkdir(parents=True)
    deep = make_deep(tmp_path / "deep")
    (deep / "link").symlink_to(tmp_path / "kept")
    (deep / "dd" / "closed" / "inside").mkdir(parents=True)
    (deep / "dd" / "closed").chmod(0)
    remove_folder(deep)
    assert not deep.exists()
    assert (tmp_path / "kept" / "file").exists()


def test_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept" / "file").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    with pytest.raises(OSError, match="link"):
        remove_folder(tmp_path / "link")
    try_remove_folder(tmp_path / "absent")
    assert (tmp_path / "kept" / "file").exists()


@pytest.mark.thorough
def test_store_with_a_deep_cache_is_measured_and_cleaned(tmp_path: Path) -> None:
    cache = make_deep(tmp_path / "compiler-caches" / "x")
    (cache / "data").write_bytes(b"x" * 100_000)
    store = open_store(tmp_path, offline=True)
    assert measure_disk_bytes(tmp_path) >= 100_000
    store.trim(0)
    assert store.clean() >= 100_000
    assert not cache.exists()


@pytest.mark.thorough
def test_private_directory_of_any_depth_is_removed() -> None:
    with open_private_directory() as folder:
        make_deep(folder / "out")
    assert not folder.exists()


@pytest.mark.thorough
def test_deep_folder_is_linked(tmp_path: Path) -> None:
    link_tree(make_deep(tmp_path / "a", 1100), tmp_path / "b")
    assert measure_disk_bytes(tmp_path / "b") == measure_disk_bytes(tmp_path / "a")
    remove_folder(tmp_path / "a")  # pytest removes by recursion
    remove_folder(tmp_path / "b")


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["objects", "refs/tags"])
def test_deep_folders_in_a_clone_are_no_hindrance(tmp_path: Path, place: str) -> None:
    clone = make_repository(tmp_path / "clone")
    sha = clone.commit("first", "a.txt")
    deep = make_deep(clone.path / ".git" / place)
    assert open_history(str(clone.path), tmp_path / "store").line == (sha,)
    remove_folder(deep)
