"""The packages that testcases require: versions, sources and the operator's budget. The wheels are the tests' own."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from runners.core.errors import UserError
from runners.core.packages.requirements import check_requirements, load_layers, pin_layers
from runners.environments.config import Config, PackageSource, read_config
from runners.environments.resolve import Forbidden
from runners.environments.store import Store, open_store
from tests.runners.environments.test_store import RELEASE, build_wheel, make_store

NEWEST = load_layers()["torch"][-1]
OLDEST = load_layers()["torch"][0]


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    build_wheel(folder, "tiny", "1.0", {"tiny/__init__.py": "VALUE = 1\n"})
    build_wheel(folder, "nvidia_cublas", "1.0", {"nvidia/__init__.py": ""})
    for version in (OLDEST.version, NEWEST.version, "99.0"):
        build_wheel(folder, "torch", version, {"torch/__init__.py": ""}, requires="nvidia-cublas")
    return folder


@pytest.fixture
def store(tmp_path: Path, wheels: Path) -> Store:
    return make_store(tmp_path / "store", wheels)


@pytest.mark.thorough
def test_pytorch_comes_without_its_gpu_packages(store: Store) -> None:
    """And in the version of the newest layer, although newer ones exist."""
    assert store.get_environment(RELEASE, ("torch",)).list_packages() == {"tiny": "1.0", "torch": NEWEST.version}


@pytest.mark.thorough
def test_the_operator_may_want_gpu_packages(store: Store) -> None:
    """They make another environment."""
    full = replace(store, gpu_packages=True).get_environment(RELEASE, ("torch",))
    assert full.list_packages()["nvidia-cublas"] == "1.0"
    assert full.digest != store.get_environment(RELEASE, ("torch",)).digest


@pytest.mark.thorough
def test_environments_share_the_layer(store: Store, wheels: Path) -> None:
    """Its files are hard links to one unpacked wheel."""
    build_wheel(wheels, "tiny", "2.0", {"tiny/__init__.py": "VALUE = 2\n"})
    other = replace(RELEASE, version="3.12", distributions=("tiny==2.0",))
    first, second = (store.get_environment(one, ("torch",)) for one in (RELEASE, other))
    files = [one.site_packages / "torch/__init__.py" for one in (first, second)]
    assert first.digest != second.digest
    assert files[0].samefile(files[1])


def test_a_download_over_the_budget_is_forbidden(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the size, the largest package and the limit. A release alone has no limit."""
    monkeypatch.setattr("runners.environments.resolve.measure_download_bytes", lambda pins: 700 * 2**20 * len(pins))
    small = replace(store, max_download_bytes=900 * 2**20)
    with pytest.raises(Forbidden, match=r"download of 1400 MiB .* the operator's limit is 900 MiB"):
        small.get_environment(RELEASE, ("torch",))
    assert small.get_environment(replace(RELEASE, distributions=("tiny==1.0", "nvidia-cublas"))).list_packages()


def test_a_lower_budget_holds_for_resolutions_that_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's new limit counts at once."""
    store.get_environment(RELEASE, ("torch",))
    monkeypatch.setattr("runners.environments.resolve.measure_download_bytes", lambda pins: 700 * 2**20 * len(pins))
    with pytest.raises(Forbidden):
        replace(store, max_download_bytes=900 * 2**20).get_environment(RELEASE, ("torch",))


def test_a_package_off_the_list_is_forbidden(store: Store) -> None:
    """The list is the operator's too."""
    with pytest.raises(Forbidden, match="not on the list"):
        store.get_environment(RELEASE, ("left-pad",))


@pytest.mark.parametrize(
    ("day", "version"),
    [
        (None, NEWEST.version),
        (NEWEST.published, NEWEST.version),
        (OLDEST.published, OLDEST.version),
        (date(2015, 1, 1), OLDEST.version),
    ],
)
def test_the_day_of_a_report_chooses_the_layer(day: date | None, version: str) -> None:
    """Every release then runs with the same version."""
    assert pin_layers(("numpy", "torch"), day) == ("numpy", f"torch=={version}")


def test_a_version_in_the_testcase_is_kept() -> None:
    """The reporter's own choice counts."""
    assert pin_layers(("torch==2.6.0", "torch>=2"), None) == ("torch==2.6.0", "torch>=2")


def test_layers_are_in_the_order_of_their_days() -> None:
    """The last one is the newest, and each may be installed."""
    for package, layers in load_layers().items():
        assert list(layers) == sorted(layers, key=lambda one: one.published)
        assert check_requirements((package,)) == ((package,), ())


# --------------------------------------------------------------------------------- the operator's file


def test_the_operator_sets_sources_and_budget(tmp_path: Path) -> None:
    """An index becomes the package's own page, so that no other package comes from there."""
    path = tmp_path / "config.toml"
    path.write_text(
        '[[packages]]\npackage = "Torch"\nindex = "https://example.invalid/cpu/"\n'
        "[requirements]\ndownload_mib = 4000\ngpu_packages = true\n"
    )
    store = open_store(tmp_path / "store", config=read_config(path))
    assert store.uv.options == ("--find-links", "https://example.invalid/cpu/torch/")
    assert (store.max_download_bytes, store.gpu_packages) == (4000 * 2**20, True)


def test_a_configured_build_for_cpus_is_preferred(tmp_path: Path, wheels: Path, store: Store) -> None:
    """A local version is newer than the same version of the index."""
    cpu = tmp_path / "cpu"
    cpu.mkdir()
    build_wheel(cpu, "torch", f"{NEWEST.version}+cpu", {"torch/__init__.py": ""})
    source = PackageSource(package="torch", folder=str(cpu))
    configured = open_store(tmp_path / "other", config=Config(packages=(source,)))
    uv = replace(configured.uv, options=(*store.uv.options, *configured.uv.options))
    found = replace(configured, uv=uv).get_environment(RELEASE, ("torch",))
    assert found.list_packages()["torch"] == f"{NEWEST.version}+cpu"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[packages]]\npackage = "torch"\n', "exactly one of index, page and folder, not none"),
        ('[[packages]]\npackage = "torch"\nindex = "/srv"\n', "a directory is a folder"),
        ("[requirements]\ndownload_mib = 0\n", "download_mib"),
        ('[requirements]\ngpu = "yes"\n', "gpu"),
    ],
)
def test_a_fault_in_the_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    """With the table and the key."""
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=says):
        read_config(path)
