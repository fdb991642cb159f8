"""Find the names, modules and files that Python text needs."""

from __future__ import annotations

import ast

import pytest

from bot.extract.python.names import find_files_read, read_names
from bot.extract.python.requirements import read_imports
from runners.toolchains import find_toolchain


@pytest.mark.parametrize(
    ("code", "free"),
    [
        ("x = y", ("y",)),
        ("import a.b as c\nc, a", ("a",)),
        ("def f(p, *q, k=z, **r):\n    return p, q, k, r, g(s)\ndef g(t): return t", ("z", "s")),
        ("class A:\n    m = 1\n    def f(self): return m\n    n = m", ("m",)),
        ("class M:\n    def main(self): return M", ()),
        ("[i for i in u for j in i]", ("u",)),
        ("def f():\n    global w\n    w = 1\nw", ()),
        ("try: pass\nexcept ValueError as e: e\nprint(__name__)", ()),
        ("with o() as (a, b): a\nfor c in b: c\nif (d := c): d", ("o",)),
        ("from tvm import *\nfoo(bar)", ()),
    ],
)
def test_free_names_are_those_used_and_bound_nowhere(code: str, free: tuple[str, ...]) -> None:
    """Python's own scoping decides. After a star import, no name is known to be free."""
    assert set(read_names(code).free) == set(free)


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ('onnx.load("a/b.onnx")', ("a/b.onnx",)),
        ('p = "m.onnx"\nonnx.load(p)', ("m.onnx",)),
        ('from os.path import join\nd = "data"\nopen(d + "/x.txt").read()', ("data/x.txt",)),
        ('Path("cfg.json").read_text()', ("cfg.json",)),
        ('np.save("x.npy", a)\nnp.load("x.npy")', ()),
        ('open("out.txt", "w").write("")', ()),
        ('torch.onnx.export(m, x, "m.onnx")\nonnx.load("m.onnx")', ()),
        ('run([tool, "--output=@c.npy"]); np.load("c.npy")', ()),
        ("onnx.load(sys.argv[1])", ()),
        ('open(sys.argv[1], "rb").read()', ()),  # the mode is no file
        ('open(name, mode="r")', ()),
        ('open("w.bin", "rb").read()', ("w.bin",)),
        ('tools.compile_str(text, output_file="m.vmfb")\nopen("m.vmfb", "rb")', ()),
        ('subprocess.run(["clang", "-c", "a.c", "-o", "a.o"])\nopen("a.o", "rb")', ()),
        ('os.system("iree-compile a.mlir -o out/a.vmfb")\nopen("out/a.vmfb", "rb")', ("a.mlir",)),
        ('open("a.mlir", "w").write(m)\nos.system("iree-compile a.mlir -o a.vmfb")\nopen("a.vmfb", "rb")', ()),
        ('subprocess.check_call("iree-opt a.mlir -o b.mlir".split())\nopen("b.mlir")', ("a.mlir",)),
        ('subprocess.run(shlex.split("tool -o a.o"))\nopen("a.o", "rb")', ()),
        ('command = "tool x > log.txt"\nsubprocess.run(command, shell=True)\nopen("log.txt")', ()),
        ('os.system("tool --output=a.o")\nopen("a.o", "rb")', ()),
        ('os.system("tool a.o")\nopen("a.o", "rb")', ("a.o",)),
        ("os.system(\"tool 'a.o -o b.o\")\nopen('b.o', 'rb')", ("b.o",)),
        ('open("/dev/null")', ()),
    ],
)
def test_files_read_are_literal_paths_that_the_code_does_not_write_first(code: str, files: tuple[str, ...]) -> None:
    """A path that is not spelled out, or that the code writes first, is not missing."""
    assert find_files_read(ast.parse(code)) == files


def test_only_the_allow_list_maps_imports_to_distributions() -> None:
    """The toolchain's own modules and the standard library need no distribution. Unknown modules are listed."""
    code = "import os, cv2, numpy, tvm.relax, my_stuff\nfrom . import util\nfrom sklearn.svm import SVC\n"
    found = read_imports(ast.parse(code), "tvm")
    assert found.requirements == ("opencv-python-headless", "scikit-learn")
    assert found.unknown == ("my_stuff", ".")


def test_a_package_that_the_compiler_once_shipped_is_no_file_of_the_reporter() -> None:
    """The run says since when the package is gone. No reader can add it to the issue."""
    found = read_imports(ast.parse("import topi\nfrom nnvm.compiler import build\nimport vta.testing\n"), "tvm")
    assert found.unknown == ()
    assert find_toolchain("tvm").PROVIDES.isdisjoint({"topi", "nnvm", "vta"})


def test_an_import_that_may_fail_is_not_missing() -> None:
    """The code after ``except ImportError`` handles the failure."""
    assert read_imports(ast.parse("try:\n    import zzz\nexcept ImportError:\n    zzz = None\n"), "tvm").unknown == ()


def test_the_allow_list_can_be_extended() -> None:
    """Settings may add import names and their distributions."""
    assert read_imports(ast.parse("import zzz"), "tvm", {"zzz": "zzz-dist"}).requirements == ("zzz-dist",)
