"""Programs of IREE from their text: what all of one kind have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.proving.planted.families.iree.text import CPU, Steps, steps
from bench.proving.planted.program import Control, Ending, Findings, Program
from bench.proving.story import Claim

INNOCENT = Findings(
    may=("guilty-pass", "nondeterministic", "device-specific"),
    never=("out-of-bounds-access", "uninitialized-read", "undefined-operand", "broken-rule", "missing", "api-moved"),
)


OUT_OF_BOUNDS = Findings(must=("out-of-bounds-access",), may=("nondeterministic", "device-specific", "broken-rule"))


REFUSED_ACCESS = Findings(may=(*OUT_OF_BOUNDS.must, *OUT_OF_BOUNDS.may))
"""The runtime itself refuses the access."""
UNWRITTEN = Findings(must=("uninitialized-read",), may=("nondeterministic", "device-specific", "broken-rule"))
UNDEFINED = Findings(may=("broken-rule", "undefined-operand", "guilty-pass", "device-specific", "nondeterministic"))
MISUSE = Findings(
    may=("broken-rule", "undefined-operand", "device-specific"), never=("out-of-bounds-access", "uninitialized-read")
)
Made = tuple[Program, Control]


def computed(
    name: str,
    family: str,
    title: str,
    text: str,
    inputs: Sequence[str],
    right: str,
    *,
    expects: bool | None = None,
    flags: Sequence[str] = (CPU,),
    accused: str = "",
) -> Program:
    """A program that computes a value; every other one has iree-run-module check it."""
    file = name.rpartition("-")[0].replace("-", "_")
    checked = int(name.rpartition("-")[2]) % 2 == 1 if expects is None else expects
    generic = () if flags[0] != CPU or int(name.rpartition("-")[2]) == 2 else ("--iree-llvmcpu-target-cpu=generic",)
    commands = steps(file, inputs, flags=(*flags, *generic), **({"expected": right} if checked else {}))
    return Program(
        name=f"iree-{name}",
        family=f"iree-{family}",
        toolchain="iree",
        title=title,
        files={f"{file}.mlir": text},
        steps=commands,
        claim="wrong-result",
        ending="assertion" if checked else "printed",
        shows="[FAILED]" if checked else "",
        right="" if checked else right,
        accused=(accused,) if accused else (),
        findings=INNOCENT,
    )


def failing(
    name: str, family: str, title: str, text: str, shows: str, *, claim: str, commands: Steps = ()
) -> Program:
    file = name.rpartition("-")[0].replace("-", "_")
    compiles = (("iree-compile", CPU, f"{file}.mlir", "-o", f"{file}.vmfb"),)
    return Program(
        name=f"iree-{name}",
        family=f"iree-{family}",
        toolchain="iree",
        title=title,
        files={f"{file}.mlir": text},
        steps=commands or compiles,
        claim="crash" if claim == "crash" else "hang" if claim == "hang" else "error",
        ending="signal" if claim == "crash" else "hang" if claim == "hang" else "error",
        shows=shows,
        findings=INNOCENT,
    )


def at_fault(
    name: str,
    family: str,
    title: str,
    text: str,
    commands: Steps,
    *,
    mended: str = "",
    mended_commands: Steps = (),
    shows: str = "[FAILED]",
    claim: Claim = "wrong-result",
    ending: Ending = "assertion",
    findings: Findings = MISUSE,
    right: str = "",
    mended_right: str = "",
) -> Made:
    """A program with a mistake, in its text or its command line, and the same without."""
    assert (mended or text, mended_commands or commands) != (text, commands), name
    file = commands[0][-3]
    program = Program(
        name=f"iree-{name}", family=f"iree-{family}", toolchain="iree", title=title, files={file: text},
        steps=commands,
        claim=claim, ending=ending, shows=shows, findings=findings, right=right,
    )  # fmt: skip
    files: Mapping[str, str] = {file: mended or text}
    return program, Control(files=files, steps=mended_commands or commands, clean_on=(), shows=mended_right)


def lines(name: str, inputs: Sequence[str], **more: str) -> Steps:
    return steps(name, inputs, flags=(CPU, "--iree-llvmcpu-target-cpu=generic"), **more)
