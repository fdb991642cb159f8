"""Define the vocabulary of TVM's failures: its exceptions, its C++ stacks, its messages about devices."""

from __future__ import annotations

import re

from runners.core.toolchain.failures import (
    DEVICES,
    Detail,
    FailureVocabulary,
    FatalLog,
    Retired,
    Sign,
    sign_of_missing_device,
)


def _describe_dictionary(target: str) -> str:
    kind = target.partition(" ")[0]
    return f'a dictionary, {{"kind": "{kind}", …}}'


_TARGET_STRING = Retired(
    message=re.compile(r'Cannot parse target string "(?P<text>[^"\n]{1,200})"\. CLI target string form'),
    notation="targets written like a command line",
    successor=_describe_dictionary,
)
"""A notation that 0.24.0 and later reject."""

_OPERATOR = re.compile(r'\bir\.Op\(span=[^"\n]{0,120}name="([\w.]{1,100})"[^\n]{0,1500}?support_level=\d{1,3}\)')
"""An operator printed with all its fields. The fields differ between releases, and hide the message."""

_NO_LLVM = "this build has no LLVM: it runs passes and generates no code"


def _make_no_llvm_sign(pattern: str) -> Sign:
    return Sign(pattern=re.compile(pattern, re.IGNORECASE), means=_NO_LLVM)


FAILURES = FailureVocabulary(
    program_checks=("well_formed", "verify_well_formed", "verify_ssa", "verify_memory"),
    refusals=("ScheduleError",),
    packages=("tvm", "tvm_ffi"),
    noise_frames=("tvm::ffi::", "TVMFFI", "TVMFuncCall"),
    site_renames=(("StructInfo", "Type"),),  # 0.26 renamed struct info to type
    crash_banners=(("SIGSEGV", re.compile(r"\b[Ss]egfault encountered")),),
    error_classes=("OpNotImplemented", "OpAttributeRequired", "OpAttributeInvalid", "OpAttributeUnImplemented"),
    same_types=(
        frozenset({"InternalError", "TVMError"}),  # TVM raised TVMError until 0.8, and InternalError since then
        frozenset({"DiagnosticError", "error", "mlir-error"}),
    ),
    diagnostic_errors=("DiagnosticError",),
    details=(Detail(start="Error message: ", exception="ScheduleError"),),
    unnamed=(Detail(start="Check failed: ", exception="InternalError"),),
    fatal_logs=(
        FatalLog(  # dmlc until 2020: the location of the logger, then that of the failure
            row=re.compile(
                r"^[ \t>]{0,8}\[[\d:]{5,8}\] [^\s:]{1,300}logging\.h:\d{1,6}: \[[\d:]{5,8}\] [^\s:]{1,300}:\d{1,6}: "
                r"(?P<m>\S[^\n]{0,600})",
                re.M,
            ),
            exception="InternalError",
        ),
    ),
    abbreviations=((_OPERATOR, r"Op(\1)"),),
    subjects=(re.compile(r"\bOp\(([\w.]+)\)|schedule primitive '([\w-]+)'"),),
    call_checks=(re.compile(r"ErrorContext\(fn=\w{1,200}, loc=param\[\d+\]"),),
    missing_names=(
        re.compile(r"Cannot find global function (?P<name>[\w.]{1,200})"),
        re.compile(r"Operator (?P<name>[\w.]{1,200}) is not registered"),
        re.compile(r"Cannot handle str op argument (?P<name>[\w.]{1,200}\w)"),
        re.compile(r"Invalid config option '(?P<name>[\w.]{1,200})'"),
    ),
    retired=(_TARGET_STRING,),
    missing_devices=(
        sign_of_missing_device(rf"{DEVICES} runtime is not linked into this build"),
        sign_of_missing_device(rf"Device API {DEVICES} is not enabled"),
        sign_of_missing_device(rf"(?:Build target|target\.build\.)\s?{DEVICES} is not enabled"),
        sign_of_missing_device(rf"Cannot find global function (?:target\.build|device_api)\.{DEVICES}"),
        sign_of_missing_device(rf"Cannot find {DEVICES} path"),
        sign_of_missing_device(rf"Cannot detect device `{DEVICES}"),
    ),
    missing_parts=(
        _make_no_llvm_sign(r"Cannot find global function target\.build\.llvm\b"),
        _make_no_llvm_sign(r"target\.build\.llvm is not enabled"),
    ),
)
