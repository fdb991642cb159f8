"""Bundles: whole toolchains inside other projects' wheels, made importable without the libraries they link."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runners.core.errors import InfraError
from runners.core.toolchain.facts import Bundle
from runners.environments.bundles import complete, render_loader, stub_source
from runners.toolchains.tvm import BUNDLES

BUNDLE = Bundle(
    distribution="carrier==1.0",
    requirements=("numpy<2",),
    path="carrier/inside",
    stubs={"libreprobottest.so.9": ("reprobotTestLaunch", "reprobotTestGetErrorString", "cuGetErrorString")},
    variables={"REPROBOT_TEST_LIBRARIES": "carrier/lib"},
)


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")
def test_the_stand_ins_say_that_there_is_no_device(tmp_path: Path) -> None:
    """Each function answers as a machine without a device would."""
    complete(BUNDLE, tmp_path)
    library = ctypes.CDLL(str(tmp_path / "reprobot_stubs/libreprobottest.so.9"))
    assert library.reprobotTestLaunch() == 100
    assert library.cuGetErrorString() == 100
    library.reprobotTestGetErrorString.restype = ctypes.c_char_p
    assert library.reprobotTestGetErrorString() == b"no device"


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")
def test_the_folder_inside_is_on_the_path(tmp_path: Path) -> None:
    """Python inside the sandbox reads both from one .pth file, next to a module that compiles."""
    complete(BUNDLE, tmp_path)
    assert (tmp_path / "reprobot_bundle.pth").read_text().splitlines() == ["carrier/inside", "import reprobot_bundle"]
    compile((tmp_path / "reprobot_bundle.py").read_text(), "reprobot_bundle.py", "exec")
    assert sorted(p.name for p in (tmp_path / "reprobot_stubs").iterdir()) == ["libreprobottest.so.9"]


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="needs a C compiler")
def test_libraries_elsewhere_are_found(tmp_path: Path) -> None:
    """What a bundle's loader must know is in the environment of the process that imports it, as a path."""
    complete(BUNDLE, tmp_path)
    say = "import reprobot_bundle, os; print(os.environ['REPROBOT_TEST_LIBRARIES'])"
    done = subprocess.run([sys.executable, "-S", "-c", say], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path / "carrier/lib")


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said in one sentence with its mend."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfraError, match="install gcc"):
        complete(BUNDLE, tmp_path)


def test_names_are_c_and_nothing_else() -> None:
    """What is compiled on the host comes from our own data: plain function names."""
    for bundle in BUNDLES.values():
        names = [name for functions in bundle.stubs.values() for name in functions]
        assert all(name.isidentifier() for name in names)
        assert len(stub_source(tuple(names)).splitlines()) == len(names) == len(set(names))
        assert all(soname in render_loader(bundle) for soname in bundle.stubs)
