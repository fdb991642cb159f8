"""A module that a script imports later is watched, and its import looks like the import in a plain run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LAUNCHER = Path(__file__).parents[4] / "runners" / "guest" / "launch.py"
COMPILER = """\
import warnings
warnings.warn("an old module", UserWarning, stacklevel=2)
def build():
    return 1
"""
SCRIPT = """\
import importlib
import traceback
import tvm
print(type(tvm.__spec__), tvm.__spec__.loader.__class__, tvm.build())
importlib.reload(tvm)
try:
    import iree.compiler
except ImportError:
    traceback.print_exc()
"""


WATCHED = "tvm.build,tvm.compile,iree.compiler.compile_str"


def test_watched_import_looks_like_a_plain_import(tmp_path: Path) -> None:
    """Location of warnings, type of the specification, missing modules and a reload equal those of a plain run."""
    (tmp_path / "tvm.py").write_text(COMPILER)
    (tmp_path / "repro.py").write_text(SCRIPT)
    reader, writer = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    run = [sys.executable, str(tmp_path / "repro.py")]
    watched = [sys.executable, str(LAUNCHER), "script.run", f"{writer},{nowhere},", WATCHED, *run[1:]]
    plain, ours = (
        subprocess.run(words, pass_fds=(writer, nowhere), capture_output=True, text=True, check=True)
        for words in (run, watched)
    )
    lines = os.read(reader, 4096).decode().splitlines()
    for descriptor in (reader, writer, nowhere):
        os.close(descriptor)
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)
    assert [line.split('"')[1:4:2] for line in lines[:2]] == [["phase", "compile"], ["phase", "run"]]
