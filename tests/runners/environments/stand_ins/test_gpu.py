"""Wheels without their GPU packages: what is dropped, and libraries that load all the same."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from runners.environments.stand_ins.compile import compile_stub
from runners.environments.stand_ins.elf import Needed, read_library
from runners.environments.stand_ins.gpu import add_stand_ins, list_excluded, needs_stand_ins

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")


def test_a_required_gpu_package_is_not_excluded() -> None:
    """A testcase that names a package gets the package."""
    assert "triton" in list_excluded(("torch",))
    assert "triton" not in list_excluded(("torch", "triton"))


def test_only_pytorch_gets_stand_ins() -> None:
    """Other packages load without GPU libraries."""
    assert needs_stand_ins(("sympy", "torch"))
    assert not needs_stand_ins(("onnx", "xgboost"))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment whose torch library links two GPU libraries, which are absent, and a thread library."""
    folder = tmp_path / "site/torch/lib"
    folder.mkdir(parents=True)
    _compile(folder / "libcudart.so.13", "int cudaGetDeviceCount(int *n) { return 0; }", versions="libcudart.so.13")
    _compile(folder / "libnccl.so.2", "int ncclSend(void) { return 0; }")
    code = (
        "#include <pthread.h>\nint cudaGetDeviceCount(int *); int ncclSend(void);"
        "int count(int *n) { return cudaGetDeviceCount(n); } int send(void) { return ncclSend(); }"
        "void *start(void) { return (void *)pthread_create; }"
    )
    _compile(folder / "libtorch_cuda.so", code, "-L.", "-l:libcudart.so.13", "-l:libnccl.so.2", "-Wl,-rpath,$ORIGIN")
    (folder / "libcudart.so.13").unlink()
    (folder / "libnccl.so.2").unlink()
    return tmp_path / "site"


def _compile(library: Path, code: str, *more: str, versions: str = "") -> None:
    words = ["gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{library.name}", "-x", "c", "-", "-o", str(library)]
    if versions:
        script = library.parent / "script"
        script.write_text(f"{versions} {{ global: *; }};")
        words.append(f"-Wl,--version-script={script}")
    subprocess.run([*words, "-x", "none", *more], input=code, text=True, check=True, cwd=library.parent)


def test_a_library_loads_and_finds_no_device(site: Path) -> None:
    """Without stand-ins the same library cannot be loaded."""
    path = str(site / "torch/lib/libtorch_cuda.so")
    with pytest.raises(OSError, match=r"libcudart|libnccl"):
        ctypes.CDLL(path)
    assert sorted(add_stand_ins(site)) == ["libcudart.so.13", "libnccl.so.2"]
    library = ctypes.CDLL(path)
    assert (library.count(None), library.send()) == (100, 100)


def test_the_needs_of_a_library_are_read_with_their_versions(site: Path) -> None:
    """A stand-in without the version would not be linked."""
    found = read_library(site / "torch/lib/libtorch_cuda.so")
    assert found is not None
    assert {"libcudart.so.13", "libnccl.so.2"} <= set(found.libraries)
    assert Needed("cudaGetDeviceCount", "libcudart.so.13", "libcudart.so.13") in found.needs
    assert Needed("ncclSend", "", "") in found.needs
    assert {"count", "send", "start"} <= found.defines


def test_a_build_for_cpus_gets_no_stand_ins(tmp_path: Path) -> None:
    """The libraries of the machine are no GPU libraries."""
    folder = tmp_path / "torch/lib"
    folder.mkdir(parents=True)
    _compile(folder / "libtorch_cpu.so", "#include <pthread.h>\nvoid *start(void) { return (void *)pthread_create; }")
    assert add_stand_ins(tmp_path) == ()


def test_a_broken_library_is_no_library(site: Path, tmp_path: Path) -> None:
    """A file cut at any place, or text, raises no error."""
    data = (site / "torch/lib/libtorch_cuda.so").read_bytes()
    file = tmp_path / "cut.so"
    for length in (*range(0, 400, 7), *range(400, len(data), 997)):
        file.write_bytes(data[:length])
        read_library(file)
    file.write_text("INPUT(libtorch.so)")
    assert read_library(file) is None


@pytest.mark.parametrize(
    ("soname", "functions"),
    [
        ("libcudart.so.13", {"": ("f(void){} int g",)}),
        ("libcudart.so.13", {"": ('f"',)}),
        ("libcudart.so.13", {"v1 { global: *; }; v2": ("f",)}),
        ("../libcudart.so.13", {"": ("f",)}),
    ],
)
def test_a_name_that_is_no_name_is_never_compiled(
    soname: str, functions: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    """Names come from wheels, and the host compiles them."""
    with pytest.raises(ValueError, match="no plain name"):
        compile_stub(soname, functions, tmp_path)
    assert list(tmp_path.iterdir()) == []
