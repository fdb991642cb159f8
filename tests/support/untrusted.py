"""Every pure reader of untrusted text, and texts that make a reader with a careless pattern slow."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date

from bot.extract import extract
from bot.extract.blocks.kinds import is_environment
from bot.extract.blocks.markdown import parse_markdown
from bot.extract.blocks.sections import read_cue
from bot.extract.claim.counts import read_row_counts
from bot.extract.claim.values.drawn import drop_drawn_values
from bot.extract.claim.values.sentences import find_printed_values, find_same_form, find_value_pair
from bot.extract.claim.values.shown import list_shown_values
from bot.extract.claim.values.tables import read_table_values
from bot.extract.command_line.shell import parse_commands
from bot.extract.links import find_links
from bot.extract.python.reference.caught import find_caught_labels
from bot.extract.python.reference.own_checks import has_own_check
from bot.extract.python.reference.printed_rows import find_printed_rows
from bot.extract.python.reference.round_trip import checks_round_trip
from bot.extract.python.reference.same_model import runs_same_model
from bot.forge.run_record import decode_record
from bot.forge.source import parse_issue
from bot.forge.sticky_comment import parse_report, parse_sticky_comment
from bot.report.comment import read_marker
from bot.report.quote import escape_prose, format_log_line, join_lines, quote_block, quote_code
from bot.requests.commands import read_commands
from bot.requests.markdown_lines import find_command_lines
from bot.settings import load_settings
from bot.suspects.rank import split_words
from runners.core.errors import UserError
from runners.core.failure import api_drift
from runners.core.failure.array_mismatch import parse_mismatch
from runners.core.failure.compare import compare_signatures
from runners.core.failure.exception_chain import iterate_caught
from runners.core.failure.missing_device import find_device_trouble, find_missing_device, find_missing_part
from runners.core.failure.normalize import make_readable, normalize_message
from runners.core.failure.oracle import OracleContext, classify_run
from runners.core.failure.parse import find_exception_before_crash, parse_signature
from runners.core.failure.printed.filters import describe_pipe, read_pipe
from runners.core.failure.printed.lines.compare import read_output
from runners.core.failure.printed.programs.told_parts import read_parts
from runners.core.failure.printed.rows import judge_rows
from runners.core.failure.tensor_difference import read_tensors
from runners.core.mlir.affine_maps import list_maps, read_named_maps
from runners.core.protocol import Claim, ClaimKind, Exited, Signature, StepResult, Testcase, TestcaseKind
from runners.core.toolchain.claims import read_findings
from runners.guest.probe.filters import Filtered
from runners.minimization.mlir import reduce_mlir
from runners.probe.guest_records import StepRecord, build_record, read_records
from runners.rewrite.testcase import port_testcase, retarget_testcase
from runners.toolchains import ALL_FAILURES, TOOLCHAINS, find_toolchain
from runners.toolchains.iree.diagnosis.dispatch_traces import read_trace
from runners.toolchains.iree.diagnosis.python_programs.embedded import list_embedded
from runners.toolchains.iree.diagnosis.reference.program import compute_program
from runners.toolchains.iree.diagnosis.rules.computed_operands import find_computed_operand
from runners.toolchains.iree.diagnosis.rules.operation_rules import find_broken_rule
from runners.toolchains.iree.diagnosis.rules.undefined_operands import find_fault
from runners.toolchains.iree.diagnosis.unwritten_tensors import find_unwritten
from runners.toolchains.iree.placed_passes import place_passes
from runners.toolchains.tvm.diagnosis.programs import parse_programs
from runners.toolchains.tvm.diagnosis.rules.invalid_model import find_import
from runners.toolchains.tvm.diagnosis.rules.live_argument import find_live_argument
from runners.toolchains.tvm.diagnosis.rules.unfit_shapes import find_unfit
from tests.bot.extract.reading import make_issue

SIZE = 64 * 1024
TODAY = date(2026, 11, 21)
TVM, IREE = find_toolchain("tvm"), find_toolchain("iree")

PRINTS = "import numpy as np, tvm\nout = tvm.f()\nref = np.sort(x)\nprint('a', out, 'b', ref, out == ref)\n"
"""The beginning of a program that prints results beside references."""
SESSION = (
    "import tvm, onnxruntime as s\nfrom tvm.x import f\ns = s.InferenceSession(m)\nassert f(m) == s.run(None, x)\n"
)
"""The beginning of a program that checks results against those of another runtime."""
Reader = Callable[[str], object]
"""A refusal (`UserError`) is an answer too."""


def make_program(text: str) -> Testcase:
    """Return a Python testcase of the compiler that has most rules about Python."""
    return Testcase(
        kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": text}, steps=(("python", "repro.py"),)
    )


def make_module(text: str) -> Testcase:
    """Return a command line on MLIR."""
    step = ("iree-compile", "a.mlir", "--iree-hal-target-backends=llvm-cpu", "-o", "a.vmfb")
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"a.mlir": text}, steps=(step,))


def make_called(text: str) -> Testcase:
    """Return a command line that runs a function whose body is ``text``."""
    body = f"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{\n{text[:19_000]}\nreturn %a : tensor<2xf32>\n}}\n"
    steps = (("iree-compile", "a.mlir", "-o", "a.vmfb"), ("iree-run-module", "--module=a.vmfb", "--input=2xf32=1"))
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"a.mlir": body}, steps=steps)


def _read_front_matter(text: str) -> object:
    return parse_issue(f"---\ntitle: x\n{text[: 15 * 1024]}\n---\n{text}".encode(), source="x.md", today=TODAY)


def _judge_output(text: str) -> object:
    """Read a failing and a clean run that printed ``text`` against a claim that quotes it."""
    claim = Claim(
        kind=ClaimKind.WRONG_RESULT,
        signature=Signature(type="ValueError", message=text[:60_000], frames=(text[:300],)),
        actual=text.replace("x", "y"),
        expected=text.replace("x", "z"),
    )
    context = OracleContext(claim=claim, vocabulary=ALL_FAILURES)
    ends = [Exited(code=status) for status in (0, 1)]
    return [
        classify_run(end, (StepResult(argv=("python", "a.py"), ended=end, stderr=text),), context) for end in ends
    ]


def _locate_sources(text: str) -> object:
    words = [one.REPORTS.commits.sources for one in TOOLCHAINS.values()]
    quoted = f'  File "/src/{text}'
    return [
        (one.list_files(text), one.list_files(quoted), one.find_operation(text), one.find_function(text))
        for one in words
    ]


def _judge_told(text: str) -> object:
    context = OracleContext(claim=Claim(kind=ClaimKind.ERROR, told=text[:8000]), vocabulary=ALL_FAILURES)
    end = Exited(code=1)
    return classify_run(end, (StepResult(argv=("python", "a.py"), ended=end, stderr=text),), context)


def _compare_messages(text: str) -> object:
    return compare_signatures(
        Signature(type="ValueError", message=text, frames=("a",)),
        Signature(type="ValueError", message=f"{text[1:]}?", frames=("b",)),
        ALL_FAILURES,
    )


def _read_hang(text: str) -> object:
    record = StepRecord(
        argv=("python", "a.py"),
        status=9,
        timed_out=True,
        seconds=1.0,
        maxrss_bytes=0,
        stdout=text,
        stderr=text,
        truncated=False,
        claims=text,
        stacks=text,
        last_words=text,
    )
    return build_record(record, TVM.GUEST, script="a.py")


def _filter_output(text: str) -> None:
    pipe = read_pipe("2>&1 | grep -i 'a.*b.*a.*[%0]' | grep -v x | tail -100")
    assert pipe is not None
    filtered = Filtered(describe_pipe(pipe), SIZE)
    for stream in (1, 2):
        filtered.add(stream, text.encode())
    filtered.finish()
    read_pipe(f"| grep {text[:400]}")


READERS: Mapping[str, Reader] = {
    "extract TVM's issue": lambda text: extract(make_issue(text, "[Bug] tvm wrong result")),
    "extract IREE's issue": lambda text: extract(make_issue(text, "iree-compile crashes")),
    "title": lambda text: extract(make_issue("```python\nimport tvm\ntvm.a()\n```\n", text)),
    "program": lambda text: extract(make_issue(f"tvm\n```python\nimport tvm\n{text}\n```\n")),
    "failure": lambda text: extract(make_issue(f"```python\nimport tvm\ntvm.a()\n```\n```\n{text}\n```\n")),
    "issue file": lambda text: parse_issue(text.encode(), source="x.md", today=TODAY),
    "front matter": _read_front_matter,
    "settings": lambda text: load_settings(text[: 32 * 1024].encode()),
    "commands": read_commands,
    "command lines": lambda text: list(find_command_lines(text, "/repro")),
    "shell": parse_commands,
    "links": find_links,
    "marker": read_marker,
    "sticky comment": parse_sticky_comment,
    "report comment": parse_report,
    "run record": lambda text: decode_record(f"<!-- reprobot:record {text} -->"),
    "code span": quote_code,
    "fence": quote_block,
    "prose": escape_prose,
    "one line": lambda text: join_lines(text, SIZE),
    "log line": lambda text: format_log_line(text, SIZE),
    "words of suspects": split_words,
    "files of a stack": _locate_sources,
    "signature": lambda text: parse_signature(text, ALL_FAILURES),
    "signature of a crash": lambda text: parse_signature(text, ALL_FAILURES, Exited(code=139)),
    "printed output": lambda text: read_output(
        text, ALL_FAILURES, actual=text.replace("x", "y"), expected=text.replace("x", "z")
    ),
    "value sentences": find_value_pair,
    "printed values": find_printed_values,
    "drawn values": lambda text: drop_drawn_values(text, text),
    "shown values": lambda text: list_shown_values(parse_markdown(text), ()),
    "table values": lambda text: read_table_values(parse_markdown(f"| got | expected |\n|--|--|\n{text}")),
    "cues": lambda text: [read_cue(text), read_cue(f"expected 2, {text}")],
    "affine maps": lambda text: list_maps(text, read_named_maps(text)),
    "round trip": lambda text: checks_round_trip(make_program(text)),
    "exception before a crash": lambda text: find_exception_before_crash(
        f"Traceback (most recent call last)\n{text}Fatal Python error: {text}<no Python frame>", ALL_FAILURES
    ),
    "same form": lambda text: [find_same_form(text[:200], text), find_same_form("sum: 3 of 4", text)],
    "environment": is_environment,
    "quoted words": _judge_told,
    "tensors": read_tensors,
    "judged output": _judge_output,
    "messages": _compare_messages,
    "arrays": parse_mismatch,
    "readable": lambda text: make_readable(text, ALL_FAILURES),
    "normal form": normalize_message,
    "missing device": lambda text: find_missing_device(text, ALL_FAILURES),
    "missing part": lambda text: find_missing_part(text, ALL_FAILURES),
    "device trouble": lambda text: find_device_trouble(text, ALL_FAILURES),
    "drift": lambda text: [api_drift.find_drift(text, make_program(text), one, "0.20.0") for one in (TVM, IREE)],
    "records": lambda text: read_records(text.encode()),
    "hang": _read_hang,
    "findings": read_findings,
    "trace": read_trace,
    "rules of operations": lambda text: find_broken_rule(make_module(text)),
    "undefined operands": lambda text: find_fault(make_module(text)),
    "computed operands": lambda text: find_computed_operand(make_module(text)),
    "unwritten tensors": lambda text: find_unwritten(make_module(text)),
    "modules in strings": lambda text: list_embedded(
        Testcase(
            kind=TestcaseKind.PYTHON, toolchain="iree", files={"repro.py": text}, steps=(("python", "repro.py"),)
        )
    ),
    "printed rows": lambda text: judge_rows(text, text, find_printed_rows(make_program(f"{PRINTS}{text}"))),
    "told parts": lambda text: read_parts(Claim(kind=ClaimKind.WRONG_RESULT, told=text, actual=text)),
    "same model": lambda text: runs_same_model(make_program(f"{SESSION}{text}")),
    "caught labels": lambda text: list(iterate_caught(text, find_caught_labels(make_program(text)))),
    "definitions": lambda text: compute_program(make_called(text)),
    "live argument": lambda text: find_live_argument(make_program(text)),
    "port of MLIR": lambda text: port_testcase(make_module(text), "3.8.0", IREE),
    "port of Python": lambda text: port_testcase(make_program(text), "0.27.0", TVM),
    "retarget": lambda text: retarget_testcase(make_program(text), "cuda"),
    "own checks": lambda text: has_own_check(make_program(text)),
    "smaller MLIR": lambda text: reduce_mlir(text, lambda _: False),
    "filtered output": _filter_output,
    "counted rows": lambda text: read_row_counts(
        parse_markdown(f"`iree-opt a.mlir | grep -c x` prints 3 expected{text}"), (), "| grep -c x"
    ),
    "imported model": lambda text: find_import(make_program(f"from_onnx(m)\n{text}")),
    "unfit shapes": lambda text: [
        list(find_unfit(tree)) for _, tree in parse_programs(make_program(f"def f(a: R.Tensor((4, 8))):\n{text}"))
    ],
    "placed passes": lambda text: place_passes(
        ("iree-opt", "a.mlir", f"--pass-pipeline={text}"), {"a.mlir": text}, text
    ),
}
"""Readers of the words of an issue, a comment, a settings file, a guest or a compiler."""

UNITS = (
    *(
        "0",
        "1.",
        "1e",
        "-",
        "a",
        "A",
        "_",
        ".",
        "/",
        "\\",
        "'",
        '"',
        "`",
        "*",
        "#",
        "%",
        "@",
        "<",
        ">",
        "&",
        "=",
        "~",
    ),
    *("(", "[", "{", ")", "[]", "()", "\t", " ", "\n", "\r", "\x1b[", "\x00", "\u2028", "\u0663", "é", "_a_", "**a"),
    *(
        "0x",
        "0x1 ",
        "1x",
        "1.0 ",
        "nan ",
        "1:",
        "1_",
        "a.",
        "a/",
        "/a",
        "a_",
        "a b ",
        "a,",
        "::",
        "a::",
        "a=",
        "--a ",
    ),
    *("'''", '"""', "```", "```\n", "```python\n", "~~~\n", "> ", "- ", "* a\n", "<!--", "-->", "<pre>", "<details>"),
    *("&lt;", "&#", "[a](", "![", "](", "http://a", "https://github.com/a/b/issues/1 ", "www.", "@a ", "#1 ", "\\'"),
    *("import a\n", "from a import b\n", "def f():\n", "x = 1\n", "x: int = 1\n", "if x:\n", "@a\n", "class A:\n"),
    *(
        "print(x)\n",
        "s = s.run(s.run(x))\n",
        "assert f(m) == s.run(x)\n",
        "try:\n x\nexcept E as e: print(s, e)\n",
        ">>> x\n",
        "... x\n",
        "$ a\n",
        "$ python a.py\n",
        "x = [\n",
        "f(",
        "lambda:",
        "not ",
        "a = ",
        "a;",
    ),
    *("import a; ", "%timeit a\n", "<snip>\n", "# a\n", "    a\n", "   a", "\ta\n", "(\n", ")\n", "'\n", "elif x:\n"),
    *("Traceback (most recent call last):\n", '  File "a.py", line 1, in f\n', '  File "', "ValueError: a\n", "E: "),
    *("ValueError", "ValueError: ", "During handling of the above exception, another exception occurred:\n\n"),
    *("#0 0x1 in f\n", "#0 0x0000 llvm::x(", " #1 0x0 a (b)\n", "Stack dump:\n", "a.mlir:1:1: error: b\n", "error: "),
    *(
        "Check failed: ",
        "Check failed: (a) is false: ",
        "[10:00:00] a.cc:1: ",
        "  1: a\n",
        "  0: tvm::a()\n",
        "a.b.C: ",
    ),
    *(
        "Mismatched elements: 1 / 2 (50%)\n",
        "Max absolute difference: 1\n",
        "expected ",
        "expected 1 got 2\n",
        "got ",
    ),
    *("Segmentation fault (core dumped)\n", "Aborted\n", "terminate called ", "free(): ", "==1==ERROR: ", "a.cc:1: "),
    *("2x2xf32=[1 2]\n", "f32=", "1x1x", "[[1 2]\n", "EXEC @a\n", "result[0]: ", "a: 1\n", "True\n", "diff = 0.1\n"),
    *("func.func @f() {\n", "%0 = a.b %1 : i32\n", "%0", "!a<", "#map = affine_map<(d0) -> (d0)>\n", "tensor<", "?x"),
    *(
        "!torch.list<",
        "!torch.vtensor<[2],",
        "torch.constant.int ",
        '%1 = torch.operator "onnx.A"(%a) {torch.onnx.b = ',
    ),
    *("%1 = torch.aten.view %a, %a : !torch.int -> !torch.vtensor<[2],f32>\n", "torch.prim.ListConstruct "),
    *(
        "linalg.generic {",
        "tensor.empty() : ",
        "dense<",
        "arith.divsi %a, %b : i32\n",
        "loc(",
        "//",
        "}\n",
        "^bb0:\n",
    ),
    *(
        "iree-compile a.mlir -o b\n",
        "iree-compile ",
        "--a=",
        "cat > a <<EOF\n",
        "<<EOF\n",
        "\\\n",
        "a && ",
        "a | ",
        "$(",
    ),
    *(
        "tvm 0.27.0 ",
        "v0.1.",
        "0.27.",
        "iree 3.5.0rc2025 ",
        "version: ",
        "commit abcdef1 ",
        "since 0.1 ",
        "works on ",
    ),
    *(
        "/repro run\n",
        "/repro ",
        "a: b\n",
        "a: [",
        "- a\n",
        "? a\n",
        "&a ",
        "*a ",
        "{a: ",
        "!!a ",
        "| ",
        "1:1:",
        "<<: ",
    ),
    *('{"kind": 1}\n', '{"a":', "[[", '{"step": {', "reprobot:", "<!-- reprobot:1 ", "reprobot:record ", "verdict="),
    *("CUDA error: ", "out of memory ", "AttributeError: module 'a' has no attribute 'b'\n", "has no attribute '"),
    *(
        "R.function\n",
        "@I.ir_module\n",
        "tvm.relax.",
        "relax.op.",
        "target='cuda' ",
        "np.",
        "### Steps to reproduce\n",
    ),
    *(
        "### Expected behavior\n",
        "Output:\n",
        "-----\n",
        "=====",
        "a-b",
        "A1b2",
        "a1",
        "1a",
        ".5",
        "+1",
        "1e5",
        "1.5e",
    ),
)
"""What careless patterns trip over when it is repeated."""


def make_texts(unit: str, size: int = SIZE) -> Iterator[str]:
    """Yield texts of ``size`` characters made of ``unit``: as one run, and as long lines, each with an odd end."""
    text = (unit * (size // len(unit) + 1))[: size - 2]
    yield f"{text}!x"
    if "\n" not in unit:
        yield "x\n".join(text[at : at + 1_990] for at in range(0, len(text), 1_990))[:size]


def measure(reader: Reader, text: str) -> float:
    """Return the processor time of one reading, in seconds."""
    begin = time.thread_time()
    with suppress(UserError):
        reader(text)
    return time.thread_time() - begin


def measure_baseline() -> float:
    """Return the time of a plain linear reading on this machine, now: the unit of all bounds."""
    text = "word 12.5, " * (SIZE // 11)
    return min(measure(lambda text: [one.upper() for one in re.findall(r"\w+|\W", text)], text) for _ in range(5))
