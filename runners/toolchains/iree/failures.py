"""Define the vocabulary of IREE's failures: runtime statuses, refused flags, stacks and errors of its tools."""

from __future__ import annotations

import re

from runners.core.toolchain.failures import DEVICES, FailureVocabulary, Relay, Sign, sign_of_missing_device
from runners.core.toolchain.products import Product

UNPLACED = re.compile(
    r"unable to schedule pass '(?:[\w-]{1,80}::){0,4}(?P<name>\w{1,120})' on a PassManager intended to run on"
    r" '(?P<on>[\w.]{1,60})'"
)
"""A pass that works on any function-like operation, in a pipeline of a module."""

STATUS_CODES = (
    *("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "INCOMPATIBLE"),
)
"""The codes of gRPC, and one of IREE: https://grpc.io/docs/guides/status-codes."""
_STATUS = re.compile(rf"(?P<code>{'|'.join(STATUS_CODES)}); (?P<m>[^\n]{{1,600}})")

_STATUS_OF_2020 = re.compile(
    r"(?<![\w.])(?P<code>INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED"
    r"|RESOURCE_EXHAUSTED|FAILED_PRECONDITION|OUT_OF_RANGE|DATA_LOSS): (?P<m>[^\n`]{1,600})"
)
"""Builds before the summer of 2020 print a colon after the code."""

DISPATCHES = Product(
    noun="dispatch",
    plural="dispatches",
    named_pattern=r"dispatch(?:es)?(?! (?:creation|formation|count|function|pass|phase|level|id)\b)",
    made=re.compile(r"\bflow\.dispatch @"),
    formed=re.compile(r"\bflow\.dispatch\.(?:region|workgroups)\b"),
    flags=("--compile-to=flow", "--mlir-elide-elementsattrs-if-larger=16"),
)
"""Dispatches of the printed program. Earlier they are regions, some of which are merged or dropped later."""

FAILURES = FailureVocabulary(
    products=(DISPATCHES,),
    packages=("iree",),
    namespaces=("mlir::iree_compiler::",),
    noise_frames=("mlir::iree_compiler::runIreecMain", "ireeCompiler"),
    relays=(
        Relay(exception="CompilerToolError", died=re.compile(r"^Error code: -(?P<signal>\d{1,3})$", re.MULTILINE)),
    ),
    status_codes=STATUS_CODES,
    statuses=(_STATUS, _STATUS_OF_2020),
    status_packages=("iree.runtime",),
    flag_errors=(
        re.compile(
            r"(?P<m>unknown command line flag '[^']{1,200}'|flag '[^']{1,200}' not found"
            r"|unregistered device alias[^\n]{0,200})",
            re.IGNORECASE,
        ),
    ),
    output_errors=(re.compile(r"\[FAILED\] result\[\d{1,6}\]: (?P<m>[^;]{1,600})"),),  # of --expected_output
    # A scalar is on the line of its index (``result[0]: i64=42``), a buffer below it.
    harness_lines=(re.compile(r"EXEC @|result\[\d+\]: (?!\S+=)"),),
    left_out_assertions=(re.compile(r"&&|\|\||[=!<>]=|\w\(|->|::|^!|\w [<>] \w"),),  # no fatal error contains these
    left_out_diagnostics=(re.compile(r"\boperation destroyed but still has uses\b"),),  # in `Operation::~Operation`
    refusals_of_all=(re.compile(r"\billegal operations (?:still remain|were found)"),),
    rejections=(
        re.compile(r"does not refer to a registered pass or pass pipeline|is not registered|Dialect `.+' not found"),
        re.compile(
            r"custom op '.+' (?:is unknown|expected )|unregistered (?:dialect|operation)|dialect '.+' is unknown"
        ),
        re.compile(
            r"^(?:expected|unexpected|invalid|unknown|undefined|use of undeclared) (?!error|result|output|symbol:)"
        ),
        re.compile(r"op (?:expected \d+ (?:operands?|results?|regions?)|requires attribute|attribute '.+' failed)"),
        re.compile(r"\bresource does not exist$|^resource data missing in input IR"),
        re.compile(r"\bMLIR Textual PassPipeline Parser:"),
        re.compile(r"properties dictionary is missing required attribute|\binvalid properties .{1,200} for op "),
        re.compile(r"^can't run '.+' pass manager on '.+' op|expected pass pipeline to be wrapped with the anchor"),
        re.compile(r"^For \w+= argument, expected one of"),  # an enumeration of the Python interface
        re.compile(r"^unknown custom value for|^Unknown command line argument"),
    ),
    text_rules=(
        re.compile(r"^use of value '%[^']{1,200}' expects different type than prior uses"),
        re.compile(r"^(?:redefinition of (?:SSA value|symbol)|use of undeclared SSA value name)"),
        # Messages of MLIR's parser and of its verifier of blocks, which know no dialect.
        re.compile(r"^(?:block with no terminator|empty block: expect at least a terminator)"),
        re.compile(r"^(?:'[\w.]{1,200}' op )?must be the last operation in the parent block"),
        re.compile(r"^operand #\d{1,3} does not dominate this use"),
        re.compile(r"^(?:reference to an undefined block|cannot name an operation with no results)"),
        re.compile(r"^'[\w.]{1,200}' op (?:operand|result) #\d{1,3} must be .{1,400}, but got "),
        re.compile(r"^'[\w.]{1,200}' op requires the same (?:type|shape|element type) for all operands"),
        re.compile(r"^(?:'[\w.]{1,200}' op )?expected type to be '.{1,300}' or a rank-reduced version"),
        re.compile(r"^(?:'[\w.]{1,200}' op )?inferred type\(s\) .{1,300} incompatible with return type"),
        re.compile(r"^'[\w.]{1,200}' op (?:has \d+ operands, but|has incorrect number of|incorrect number of)"),
        re.compile(r"^type of return operand \d+ \('.{1,200}'\) doesn't match function result type"),
    ),
    argument_checks=(
        # Without the sign: IREE accepts si32 for i32, so a runtime that refuses it has a fault.
        re.compile(
            r"input\d+ element type mismatch; expected (?:[su](?=i\d))?(?P<declared>\w+)[^;]{0,20}"
            r" but have (?:[su](?=i\d))?(?P<given>\w+)"
        ),
        re.compile(r"expected shape `(?P<declared>[\dx]{1,80})`, actual shape `(?P<given>[\dx]{1,80})`"),
    ),
    call_checks=(
        re.compile(r"while invoking native function hal\.buffer_view\.assert"),
        re.compile(r"\bno function `[^`\n]{1,200}` exported by module"),
    ),
    unplaced_passes=(UNPLACED,),
    missing_names=(
        re.compile(r"unknown command line flag '-{0,2}(?P<name>[\w-]{1,200})", re.IGNORECASE),
        re.compile(r"flag '-{0,2}(?P<name>[\w-]{1,200})' not (?:found|recogni[sz]ed)", re.IGNORECASE),
        re.compile(r"'(?P<name>[\w-]{1,200})' does not refer to a registered pass or pass pipeline"),
        re.compile(r"\bin _create_config\n(?:[^\n]{0,400}\n){1,3}KeyError: '(?P<name>[\w-]{1,40})'"),
        re.compile(r"target backend '(?P<name>[\w-]{1,200})' not registered"),
        re.compile(r"unregistered device alias[^\n]{0,40}[\"'](?P<name>[\w-]{1,200})[\"']"),
        re.compile(r"unknown (?:target )?backend[^\n]{0,20}'(?P<name>[\w-]{1,200})'", re.IGNORECASE),
    ),
    missing_devices=(
        sign_of_missing_device(rf"no driver '{DEVICES}[\w-]{{0,20}}' registered"),
        sign_of_missing_device(
            rf"(?:UNAVAILABLE|INCOMPATIBLE|NOT_FOUND|FAILED_PRECONDITION); [^\n]{{0,300}}?{DEVICES}"
        ),
    ),
    device_troubles=(
        Sign(
            pattern=re.compile(r"RESOURCE_EXHAUSTED; [^\n]{0,200}(?:cuda|hip|vulkan|device)", re.IGNORECASE),
            means="the device ran out of memory",
        ),
        Sign(
            pattern=re.compile(
                r"--task_topology_\w+=\S* selected [^\n]{0,40} none contain any usable cores", re.IGNORECASE
            ),
            means="IREE found no processor to use: this sandbox does not show it how they lie (gVisor);"
            " use another engine",
        ),
    ),
)
