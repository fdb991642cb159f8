"""Programs of TVM from their text: what all of one kind have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.proving.planted.families.tvm.text import IMPORTS, TIRX, Parameters, builder, module, run
from bench.proving.planted.program import PYTHON, Ending, Findings, Program
from bench.proving.story import Claim

Shape = tuple[int, ...]
INNOCENT = Findings(
    may=("guilty-pass", "nondeterministic", "values-replaced"),
    never=("out-of-bounds-access", "uninitialized-read", "broken-rule", "signature-changed", "missing", "api-moved"),
)


OUT_OF_BOUNDS = Findings(must=("out-of-bounds-access",), may=("nondeterministic", "device-specific", "broken-rule"))
UNWRITTEN = Findings(may=("uninitialized-read", "nondeterministic", "broken-rule"), never=("out-of-bounds-access",))
MISUSE = Findings(
    may=("broken-rule", "signature-changed", "nan-inequality", "undefined-operand"),
    never=("out-of-bounds-access", "uninitialized-read", "guilty-pass"),
)
TENSOR_IR = "import numpy as np\nimport tvm\n" + TIRX
Made = tuple[Program, str, tuple[str, ...]]
"""A program, the same with its mistake put right, and further verdicts to accept."""


def wrong(
    name: str,
    family: str,
    title: str,
    parameters: Parameters,
    body: Sequence[str],
    values: Mapping[str, str],
    expected: str,
    *,
    style: str = "",
) -> Program:
    """A program that compares what an operator computes with NumPy; every other one prints both instead."""
    number = int(name.rpartition("-")[2])
    written = module if style == "script" or (len(name) + number) % 2 else builder
    start = IMPORTS + written(parameters, body) + run(values)
    start = start if written is module else start.replace("from tvm.script import ir as I\n", "")
    asserted = f"{start}np.testing.assert_allclose(got, {expected}, rtol=1e-4, atol=1e-5)\n"
    printed = f'{start}print("tvm:", got.tolist())\nprint("numpy:", ({expected}).tolist())\n'
    prints = number % 2 == 1
    return Program(
        name=f"tvm-{name}",
        family=f"tvm-{family}",
        toolchain="tvm",
        title=title,
        files={"repro.py": printed if prints else asserted},
        steps=PYTHON,
        claim="wrong-result",
        ending="printed" if prints else "assertion",
        shows="" if prints else "AssertionError",
        accused=(body[0].partition("R.")[2].partition("(")[0],),
        findings=INNOCENT,
        proof={"repro.py": asserted} if prints else {},
    )


def script(
    name: str,
    family: str,
    title: str,
    text: str,
    *,
    shows: str,
    claim: Claim = "error",
    ending: Ending = "error",
    accused: tuple[str, ...] = (),
    findings: Findings = INNOCENT,
) -> Program:
    """A program of one file that fails by itself."""
    return Program(
        name=f"tvm-{name}", family=f"tvm-{family}", toolchain="tvm", title=title, files={"repro.py": text},
        steps=PYTHON, claim=claim, ending=ending, shows=shows, accused=accused, findings=findings,
    )  # fmt: skip


def crash(name: str, family: str, title: str, text: str, signal: int) -> Program:
    return script(name, f"crash-{family}", title, text, shows=f"signal {signal}", claim="crash", ending="signal")


def hang(name: str, family: str, title: str, text: str) -> Program:
    return script(name, f"hang-{family}", title, text, shows="", claim="hang", ending="hang")


def changed(name: str, family: str, title: str, text: str, accused: str) -> Program:
    return script(
        name, f"pass-{family}", title, text, shows="AssertionError", claim="wrong-result", ending="assertion",
        accused=(accused,), findings=Findings(may=INNOCENT.may, never=INNOCENT.never),
    )  # fmt: skip


def at_fault(
    name: str,
    family: str,
    title: str,
    text: str,
    mistake: str,
    mended: str,
    *,
    shows: str = "AssertionError",
    claim: Claim = "wrong-result",
    ending: Ending = "assertion",
    findings: Findings = MISUSE,
    accepted: tuple[str, ...] = (),
    imports: str = IMPORTS,
) -> Made:
    """A text with a mistake, which ``mended`` puts right."""
    assert mistake in text, (name, mistake)
    program = Program(
        name=f"tvm-{name}", family=f"tvm-{family}", toolchain="tvm", title=title, files={"repro.py": imports + text},
        steps=PYTHON, claim=claim, ending=ending, shows=shows, findings=findings,
    )  # fmt: skip
    return program, imports + text.replace(mistake, mended), accepted
