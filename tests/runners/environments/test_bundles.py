"""Bundles: toolchains inside other projects' wheels, importable without the libraries that they link."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runners.core.errors import InfraError
from runners.core.toolchain.facts import Bundle
from runners.environments.bundles import complete_bundle, render_loader
from runners.environments.stand_ins.compile import render_stub_source
from runners.toolchains.tvm import BUNDLES

BUNDLE = Bundle(
    distribution="carrier==1.0",
    requirements=("numpy<2",),
    path="carrier/inside",
    stubs={"libreprobottest.so.9": ("reprobotTestLaunch", "reprobotTestGetErrorString", "cuGetErrorString")},
    variables={"REPROBOT_TEST_LIBRARIES": "carrier/lib"},
)


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")
def test_stand_ins_report_that_there_is_no_device(tmp_path: Path) -> None:
    """Each function answers as on a machine without a device."""
    complete_bundle(BUNDLE, tmp_path)
    library = ctypes.CDLL(str(tmp_path / "reprobot_stubs/libreprobottest.so.9"))
    assert library.reprobotTestLaunch() == 100
    assert library.cuGetErrorString() == 100
    library.reprobotTestGetErrorString.restype = ctypes.c_char_p
    assert library.reprobotTestGetErrorString() == b"no device"


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")
def test_a_stand_in_of_a_bundle_has_the_functions_that_other_packages_link(tmp_path: Path) -> None:
    """A process loads one library of a name: PyTorch beside a fork was refused for a function of the CUDA runtime."""
    linked = {"libreprobottest.so.9": {"libreprobottest.so.9": {"reprobotTestOther"}, "": {"reprobotTestPlain"}}}
    complete_bundle(BUNDLE, tmp_path, linked)
    library = ctypes.CDLL(str(tmp_path / "reprobot_stubs/libreprobottest.so.9"))
    assert library.reprobotTestLaunch() == library.reprobotTestOther() == library.reprobotTestPlain() == 100


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")
def test_bundle_folder_is_on_the_path(tmp_path: Path) -> None:
    """Python inside the sandbox reads one .pth file, which imports a module that compiles."""
    complete_bundle(BUNDLE, tmp_path)
    assert (tmp_path / "reprobot_bundle.pth").read_text().splitlines() == ["carrier/inside", "import reprobot_bundle"]
    compile((tmp_path / "reprobot_bundle.py").read_text(), "reprobot_bundle.py", "exec")
    assert sorted(p.name for p in (tmp_path / "reprobot_stubs").iterdir()) == ["libreprobottest.so.9"]


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")
def test_loader_sets_the_paths_of_libraries(tmp_path: Path) -> None:
    """The process that imports the bundle gets the variables with paths."""
    complete_bundle(BUNDLE, tmp_path)
    say = "import reprobot_bundle, os; print(os.environ['REPROBOT_TEST_LIBRARIES'])"
    done = subprocess.run([sys.executable, "-S", "-c", say], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path / "carrier/lib")


def test_missing_compiler_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is one sentence."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfraError, match="install gcc"):
        complete_bundle(BUNDLE, tmp_path)


def test_stub_names_are_plain_c_names() -> None:
    """The host compiles only plain function names from our own data."""
    for bundle in BUNDLES.values():
        names = [name for functions in bundle.stubs.values() for name in functions]
        assert all(name.isidentifier() for name in names)
        assert len(render_stub_source(tuple(names)).splitlines()) == len(names) == len(set(names))
        assert all(soname in render_loader(bundle) for soname in bundle.stubs)
