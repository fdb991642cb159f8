"""The passes that a compilation reaches are seen on a real release; a pass that is only imported is not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.runners.guest.tvm.sweep import LAUNCHER, environment, variables

pytestmark = pytest.mark.compilers

PROGRAM = """\
import tvm
from tvm import relax
from tvm.relax.transform import FuseOpsByPattern

bb = relax.BlockBuilder()
x = relax.Var("x", relax.TensorType((4,), "float32"))
with bb.function("main", [x]):
    bb.emit_func_output(bb.emit(relax.op.add(x, x)))
tvm.compile(bb.get(), target="llvm")
"""


def test_a_pass_of_the_pipeline_is_reached_and_an_imported_one_is_not(tmp_path: Path) -> None:
    """A name that the compiler lacks is not known."""
    (tmp_path / "r.py").write_text(PROGRAM, encoding="utf-8")
    out = tmp_path / "findings"
    names = "legalize_ops,FuseOpsByPattern,MyNetwork"
    python = str(environment("0.27.0").interpreter.executable)
    subprocess.run(
        [python, str(LAUNCHER), "script.exercise", "tvm,tvm_ffi", names, str(tmp_path / "r.py")],
        env={**variables("0.27.0"), "REPROBOT_FINDINGS": str(out)},
        capture_output=True,
        check=True,
    )
    evidence = json.loads(out.read_text(encoding="ascii"))["evidence"]
    assert evidence == {"reached": ["legalize_ops"], "known": ["legalize_ops", "FuseOpsByPattern"]}
