"""A pass that a build runs on functions only is written in a pipeline."""

from __future__ import annotations

import pytest

from runners.core.failure.api_drift import find_drift
from runners.core.findings.kinds import Moved
from runners.core.protocol import Testcase, TestcaseKind
from runners.rewrite.testcase import port_testcase
from runners.toolchains import TOOLCHAINS
from runners.toolchains.iree.placed_passes import place_passes

SAID = (
    "<unknown>:0: error: unable to schedule pass 'GPUCheckResourceUsagePass' on a PassManager intended to run on"
    " 'builtin.module'!"
)
FLAG = "--iree-codegen-gpu-check-resource-usage"
PASS = FLAG[2:]
FILES = {"a.mlir": "module {\n  func.func @f() {\n    return\n  }\n}\n"}


@pytest.mark.parametrize(
    ("words", "placed"),
    [
        (f"{FLAG} a.mlir", f"a.mlir --pass-pipeline=builtin.module(func.func({PASS}))"),
        (f"a.mlir --split-input-file {FLAG} --cse", f"func.func({PASS}),cse"),
        (f"a.mlir {FLAG}=limit=4", f"func.func({PASS}{{limit=4}})"),
        (f"--pass-pipeline=builtin.module({PASS},cse) a.mlir", f"builtin.module(func.func({PASS}),cse) a.mlir"),
        (f"a.mlir -pass-pipeline=builtin.module({PASS}{{a=1}})", f"(func.func({PASS}{{a=1}}))"),
    ],
)
def test_a_refused_pass_runs_on_the_functions(words: str, placed: str) -> None:
    found = place_passes(["iree-opt", *words.split()], FILES, SAID)
    assert found is not None
    assert placed in " ".join(found)
    assert "--split-input-file" not in words or "--split-input-file" in found


@pytest.mark.parametrize(
    ("words", "files", "said"),
    [
        pytest.param(f"iree-opt a.mlir {FLAG}", FILES, "", id="nothing is refused"),
        pytest.param("iree-opt a.mlir --iree-other", FILES, SAID, id="another pass is refused"),
        pytest.param(f"iree-opt a.mlir {FLAG} --iree-other", FILES, SAID, id="a flag that may be a pass"),
        pytest.param(f"iree-opt a.mlir {FLAG}", {"a.mlir": "util.global @x : i32\n"}, SAID, id="no function"),
        pytest.param(f"iree-opt a.mlir {FLAG}", {"a.mlir": "func.func @f()\nutil.func @g()\n"}, SAID, id="two kinds"),
        pytest.param(f"iree-compile a.mlir {FLAG}", FILES, SAID, id="the compiler"),
        pytest.param(f"iree-opt --pass-pipeline=builtin.module(func.func({PASS})) a.mlir", FILES, SAID, id="nested"),
        pytest.param(
            f"iree-opt --pass-pipeline=builtin.module({PASS},func.func({PASS})) a.mlir", FILES, SAID, id="in part"
        ),
        pytest.param(
            "iree-opt --iree-other-usage a.mlir", FILES, SAID.replace("GPUCheckR", "R"), id="part of a word"
        ),
    ],
)
def test_any_other_call_stays(words: str, files: dict[str, str], said: str) -> None:
    assert place_passes(words.split(), files, said) is None


def test_the_refusal_is_no_failure_of_the_compiler_and_its_port_is_the_same_program() -> None:
    steps = (("iree-opt", FLAG, "a.mlir"),)
    testcase = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files=FILES, steps=steps)
    drift = find_drift(SAID, testcase, TOOLCHAINS["iree"], "3.13.0")
    assert drift is not None
    assert drift.moved is Moved.ELSEWHERE
    ported = port_testcase(testcase, "3.13.0", TOOLCHAINS["iree"], SAID)
    assert ported is not None
    assert ported.is_notation_only
    other = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files=FILES, steps=(("iree-opt", "a.mlir"),))
    assert find_drift(SAID, other, TOOLCHAINS["iree"], "3.13.0") is None
