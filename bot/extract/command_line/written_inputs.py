"""Run the Python of a report that writes the inputs of its commands, as the first steps of the testcase."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.parsed_issue import ParsedIssue, make_span
from bot.extract.python.parse import parse_python
from bot.extract.python.requirements import Imports, read_imports
from bot.extract.types import ADD_RUN, Repair, Repro

_WRITES = re.compile(
    r"\b(?:np|numpy)\.savez?\(|\.tofile\(|\bsave(?:_file|_model|_archive\w*)?\(|\bdump\w*\(|\bwrite(?:_\w+)?\("
    r"|\bexport\("
)
"""Calls by which a script writes a file."""


def add_writers(parsed: ParsedIssue, repro: Repro, allowed: Mapping[str, str] | None) -> Repro:
    """Return the testcase of commands with the scripts that write files which it lacks.

    A script counts if it names the file, calls something that writes, and is whole by itself.
    """
    for number, piece in enumerate(piece for piece in parsed.pieces if piece.kind is Kind.PYTHON):
        written = [one for one in repro.missing if one.kind == "file" and _writes(piece, one.name)]
        needs = _read_needs(piece, repro.testcase.toolchain, allowed) if written else None
        if needs is None or needs.unknown:
            continue
        name = piece.name or f"write_inputs{f'_{number}' if number else ''}.py"
        testcase = msgspec.structs.replace(
            repro.testcase,
            files={**repro.testcase.files, name: piece.text},
            steps=(("python", name), *repro.testcase.steps),
            requirements=tuple(dict.fromkeys((*repro.testcase.requirements, *needs.requirements))),
        )
        repro = replace(
            repro,
            testcase=testcase,
            spans=(*repro.spans, make_span(name, piece)),
            repairs=(*repro.repairs, *piece.repairs, Repair(kind=ADD_RUN, detail=f"python {name}")),
            missing=tuple(one for one in repro.missing if one not in written),
        )
    return repro


def _writes(piece: Piece, name: str) -> bool:
    return bool(_WRITES.search(piece.text)) and re.search(rf"['\"/]{re.escape(name)}['\"]", piece.text) is not None


def _read_needs(piece: Piece, toolchain: str, allowed: Mapping[str, str] | None) -> Imports | None:
    """Return what a script imports; None for text that does not parse."""
    tree = parse_python(piece.text)
    return read_imports(tree, toolchain, allowed) if tree is not None else None
