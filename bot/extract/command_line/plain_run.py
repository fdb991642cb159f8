"""Run MLIR that a report gives without a command, with the facts from its sentences and its output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.extract.blocks.markdown import Document, locate_code_spans
from bot.extract.command_line.workspace import Workspace
from bot.extract.types import ADD_RUN
from runners.core.protocol import Claim
from runners.core.toolchain.reports import CommandLineTools

_AT_RUN_TIME = re.compile(
    r"\b(?:at|during) run[- ]?time\b|\brun[- ]?time (?:crash|error|failure|abort|segfault|hang)"
    r"|\b(?:when|while|on|after|upon) (?:running|executing|execution|invoking)\b"
    r"(?! (?:\S+ ){0,4}`?(?:pass|pipeline|compil))"
    r"|\b(?:running|executing) (?:it|this|the (?:module|program|function|result|vmfb)|that)\b"
    r"|\bcompil(?:es|ation|ing|ed)\b[^.\n]{0,60}"
    r"\b(?:fine|works|succeeds|successfully|passes|without (?:an? )?errors?)\b",
    re.I,
)
"""Sentences about a failure that a compilation alone cannot show."""


def implies_run(document: Document, title: str, claim: Claim, tools: CommandLineTools) -> bool:
    """True if a report is about a failure of the running program."""
    signature = claim.signature
    if signature is not None and signature.type == "mlir-error":
        return False
    if signature is not None and signature.type.startswith("status:"):
        return True
    text = "\n".join((title, *(prose.text for prose in document.prose)))
    runners = {*tools.runners, *((tools.combined.name,) if tools.combined is not None else ())}
    program = re.search("|".join(map(re.escape, sorted(runners))), text) if runners else None
    compiler = re.search(
        rf"\b(?:run|running|executing) `?(?:{'|'.join(map(re.escape, sorted(tools.compilers)))})\b", text
    )
    return compiler is None and (program is not None or _AT_RUN_TIME.search(text) is not None)


_INTRODUCES = re.compile(r"\b(?:inputs?|arguments?|operands?|called with|fed with)\b[^.;`\n]{0,40}$", re.I)
_BETWEEN = re.compile(r"[\s,;&]*(?:and|,)?[\s,]*$")


def find_told_inputs(document: Document, tools: CommandLineTools) -> tuple[str, ...]:
    """Return the values that sentences call inputs, in the notation of the runner: "with the input `2xi8=1`"."""
    return tuple(value for prose in document.prose for value in _list_told(prose.text, tools.result_value_patterns))


def _list_told(text: str, patterns: Sequence[str]) -> Iterator[str]:
    if not patterns:
        return
    value = re.compile("|".join(patterns))
    begin, told = 0, False
    for offset, raw in locate_code_spans(text):
        shown = " ".join(raw.split())
        before = text[begin:offset]
        told = bool(value.match(shown)) and bool(_INTRODUCES.search(before) or (told and _BETWEEN.match(before)))
        if told:
            yield shown
        begin = offset + len(raw) + 2


def add_plain_run(work: Workspace, inputs: Sequence[str]) -> bool:
    """Run the only public function of the compiled input, with the report's inputs.

    Return False if there are several functions, or if the report gives a number of inputs that no function may have.
    """
    text = "\n".join(work.files.values())
    functions = work.tools.entry_points(text)
    if work.tools.run_module is None or not work.produced or len(functions) != 1:
        return False
    (name, takes_arguments), module = functions[0], next(iter(work.produced), "")
    if inputs and not takes_arguments:
        return False
    argv = work.tools.run_module(work.device, module, name)
    argv = (*argv, *(f"{work.tools.input_flag}={value}" for value in inputs))
    if work.tools.generate_inputs(argv[1:], work.tools.choose_extents(text, "")) is None:
        return False
    work.steps.append(argv)
    work.add_repair(ADD_RUN, " ".join(argv))
    return True
