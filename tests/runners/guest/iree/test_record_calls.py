"""The calls of a Python program are recorded with values that `iree-run-module` can be given again."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runners.core.packages.catalogue import load_catalogue
from runners.environments.store import open_store
from tests.runners.guest.tvm.sweep import LAUNCHER

pytestmark = pytest.mark.compilers

PROGRAM = '''
import numpy as np
import iree.compiler as compiler
import iree.runtime as runtime

MLIR = """
func.func @f(%x: tensor<2x2xi1>, %y: tensor<2xf32>, %n: i32) -> (tensor<2x2xi1>, tensor<2xf32>) {
  %z = arith.addf %y, %y : tensor<2xf32>
  return %x, %z : tensor<2x2xi1>, tensor<2xf32>
}
"""
blob = compiler.compile_str(MLIR, target_backends=["vmvx"])
context = runtime.SystemContext(config=runtime.Config("local-sync"))
context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, blob))
context.modules.module.f(np.array([[True, False], [False, True]]), np.array([0.1, 1e-30], "float32"), 7)
'''


WRITING = '''
import numpy as np
import iree.compiler as compiler
import iree.runtime as runtime

MLIR = """
func.func @put(%a: tensor<4xf32>, %v: tensor<1xf32>) -> tensor<4xf32> {
  %r = tensor.insert_slice %v into %a[1] [1] [1] : tensor<1xf32> into tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
blob = compiler.compile_str(MLIR, target_backends=["vmvx"])
config = runtime.Config("local-sync")
context = runtime.SystemContext(config=config)
context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, blob))
given = runtime.asdevicearray(config.device, np.zeros(4, "float32"))
context.modules.module.put(given, np.ones(1, "float32"))
assert given.to_host().tolist() == [0, 1, 0, 0]
'''


def test_a_call_has_its_module_and_values_that_commands_read(tmp_path: Path) -> None:
    """Booleans are bytes there: ``00 01``."""
    module, call = _record(PROGRAM, tmp_path)
    assert "func.func @f" in module["text"]
    assert call["inputs"] == ["2x2xi1=01 00 00 01", "2xf32=0.1 1e-30", "7"]
    assert call["results"] == ["2x2xi1=01 00 00 01", "2xf32=0.2 2e-30"]


def test_a_call_that_changes_its_argument_is_unknown(tmp_path: Path) -> None:
    """IREE 3.13 writes into an array of the caller. A reference that agrees with the result says nothing of that."""
    module, call = _record(WRITING, tmp_path)
    assert (module["kind"], call) == ("module", {"kind": "unknown-call"})


def _record(program: str, tmp_path: Path) -> list[dict[str, Any]]:
    environment = open_store().get_environment(load_catalogue().find("iree", "3.13.0"))
    (tmp_path / "r.py").write_text(program)
    path = tmp_path / "findings"
    own = {**os.environ, "PYTHONPATH": str(environment.site_packages), "REPROBOT_FINDINGS": str(path)}
    python = str(environment.interpreter.executable)
    command = [python, str(LAUNCHER), "iree.record_calls", str(tmp_path / "r.py")]
    subprocess.run(command, env=own, check=True, capture_output=True)
    return [json.loads(line) for line in path.read_text().splitlines()]
