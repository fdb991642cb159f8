"""The paths of TVM's repository for what a run names."""

from __future__ import annotations

import pytest

from runners.toolchains.tvm.sources import find_function, find_pass, list_files

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/user/repro.py", line 9, in <module>
    from_onnx(model)
  File "/opt/env/lib/python3.11/site-packages/tvm/relax/frontend/onnx/onnx_frontend.py", line 50, in from_onnx
    self.bb.normalize(op)
  File "/opt/env/lib/python3.11/site-packages/tvm/relax/block_builder.py", line 7, in normalize
  File "<unknown>", line 0, in tvm::relax::Normalizer::VisitExpr(tvm::relax::Expr const&)
  File "/project/src/relax/op/nn/nn.cc", line 90, in tvm::relax::Reshape(tvm::relax::Call const&)
  File "/project/src/relax/op/op_common.cc", line 12, in tvm::relax::Check(int)
tvm.error.InternalError: Check failed: (a) is false
"""


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("FuseOps", ("src/relax",)),
        ("tirx.Simplify", ("src/tirx/transform",)),
        ("s_tir.CompactBufferAllocation", ("src/s_tir/transform",)),
        ("tirx.backend.cuda.LowerIket", ("src/backend/cuda",)),
        ("LegalizeOps", ("python/tvm/relax/transform/legalize_ops", "src/relax/transform/legalize_ops.cc")),
        ("none", ()),
        ("unheard.of", ()),
        ("", ()),
    ],
)
def test_the_name_of_a_pass_begins_with_its_folder(name: str, paths: tuple[str, ...]) -> None:
    assert find_pass(name) == paths


def test_a_namespace_names_the_folder_of_a_function() -> None:
    assert find_function("tvm::relax::Normalizer::VisitExpr") == ("src/relax",)
    assert find_function("tvm::runtime::Object::Get") == ()
    assert find_function("std::sort") == ()


def test_a_traceback_names_its_files_the_innermost_of_each_language_first() -> None:
    """Without the reporter's file, and without the files that all calls pass."""
    assert list_files(TRACEBACK) == (
        "src/relax/op/op_common.cc",
        "python/tvm/relax/frontend/onnx/onnx_frontend.py",
        "src/relax/op/nn/nn.cc",
    )


def test_a_path_in_other_text_is_no_file_of_a_stack() -> None:
    assert list_files("/project/src/relax/ir/a.cc:66: Warning: blocks remain\nsrc/tirx/b.cc\n") == ()
    assert list_files('  File "/project/src/../../etc/x.cc", line 1, in f\n') == ()
