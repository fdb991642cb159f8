"""The folder of IREE's repository for what a run names."""

from __future__ import annotations

import pytest

from runners.toolchains.iree.sources import find_function, find_generator, find_operation, find_pass

COMPILER = "compiler/src/iree/compiler"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("iree-dispatch-creation-bubble-up-expand-shapes", f"{COMPILER}/DispatchCreation"),
        ("iree-codegen-vectorize", f"{COMPILER}/Codegen/Common"),
        ("iree-codegen-gpu-distribute", f"{COMPILER}/Codegen/Common/GPU"),
        ("iree-llvmcpu-tile-and-fuse", f"{COMPILER}/Codegen/LLVMCPU"),
        ("iree-vmvx-lower-linalg", f"{COMPILER}/Codegen/VMVX"),
        ("iree-vm-conversion", f"{COMPILER}/Dialect/VM"),
        ("torch-finalizing-backend-type-conversion", "compiler/plugins/input/Torch"),
        ("global-optimization", f"{COMPILER}/GlobalOptimization"),
    ],
)
def test_a_pass_or_phase_is_named_after_its_folder(name: str, folder: str) -> None:
    assert find_pass(name) == (folder,)


@pytest.mark.parametrize("name", ["canonicalize", "cse", "gpu-kernel-outlining", "vm-like", "iree-vmx", "none", ""])
def test_a_pass_of_another_project_has_no_folder(name: str) -> None:
    assert find_pass(name) == ()


def test_a_namespace_names_the_folder_of_a_function() -> None:
    assert find_function("mlir::iree_compiler::IREE::LinalgExt::(anonymous namespace)::Fold<T>::rewrite") == (
        f"{COMPILER}/Dialect/LinalgExt",
    )
    assert find_function("mlir::iree_compiler::GlobalOptimization::run") == (f"{COMPILER}/GlobalOptimization",)
    assert find_function("mlir::iree_compiler::limitSizes") == ()
    assert find_function("mlir::linalg::tile") == ()


@pytest.mark.parametrize(
    ("message", "folders"),
    [
        ("'stream.async.clone' op has no users", (f"{COMPILER}/Dialect/Stream",)),
        ("custom op 'iree_linalg_ext.gather' is unknown", (f"{COMPILER}/Dialect/LinalgExt",)),
        ("'tosa.mul' op expected 3 operands", ()),
        ("'iree_unheard.of' op", ()),
        ("no operation at all", ()),
    ],
)
def test_only_a_dialect_of_iree_leads_to_its_folder(message: str, folders: tuple[str, ...]) -> None:
    """The others are defined in other repositories."""
    assert find_operation(message) == folders


def test_a_device_has_the_folders_of_its_code_generator() -> None:
    assert find_generator("rocm") == (f"{COMPILER}/Codegen/LLVMGPU", f"{COMPILER}/Codegen/Common")
    assert find_generator("abacus") == ()
