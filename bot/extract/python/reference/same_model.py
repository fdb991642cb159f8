"""Decide whether a testcase lets another runtime compute the model that the compiler gets. Pure.

Such a reference is a second source for the value: a framework, ONNX's evaluator or ONNX Runtime. A formula of the
author is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.extract.python.parse import walk
from bot.extract.python.reference.own_reference import Origin, Program, list_references, read_program
from runners.core.protocol import Testcase

SESSIONS = frozenset({"ReferenceEvaluator", "InferenceSession"})
"""Classes of ``onnx.reference`` and ``onnxruntime`` whose ``run`` computes a model."""


def runs_same_model(testcase: Testcase) -> bool:
    """True if a check compares the compiler's result with what another runtime computes from the same model.

    The testcase exports a model for the compiler (``torch.export.export(net, …)``), and calls the model or the
    exported program (``program.module()(x)``). Or it imports an ONNX model, and runs a session of the same model.
    """
    texts = (text for name, text in testcase.files.items() if name.endswith(".py"))
    programs = (read_program(text, testcase.toolchain) for text in texts if "export(" in text or "onnx" in text)
    return any(_has_second_source(program) for program in programs if program is not None)


def _has_second_source(program: Program) -> bool:
    models, exported = _list_exported(program)
    compiled = {name for _, node in program.nodes for name in _list_compiled(node, program.compilers)}
    return any(
        _calls_model(value, models, exported) or _runs_session(value, program, compiled)
        for side, origin in list_references(program)
        for value in _list_values(side, origin)
    )


def _list_values(side: ast.expr, origin: Origin) -> Iterator[ast.AST]:
    yield side
    yield from (one.value for one in origin.definitions)


def _list_exported(program: Program) -> tuple[set[str], set[str]]:
    """Return the names of the exported models, and the names of exported programs."""
    models, exported = set(), set()
    for _, node in program.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="export") | ast.Name(id="export"), args=[ast.Name(id=name), *_]):
                models.add(name)
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr="export") | ast.Name(id="export"))
            ):
                exported.add(name)
            case _:
                pass
    return models, exported


def _calls_model(value: ast.AST, models: set[str], exported: set[str]) -> bool:
    """True if a value comes from a call of an exported model or program."""
    for node in walk(value):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in models:
                return True
            case ast.Call(func=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="module"))) if (
                name in exported
            ):
                return True
            case _:
                pass
    return False


def _runs_session(value: ast.AST, program: Program, compiled: set[str]) -> bool:
    """True if a value comes from ``run`` of a session whose model the compiler gets as well."""
    for node in walk(value):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call() as session, attr="run")):
                if _names_of_session(session) & compiled:
                    return True
            case ast.Call(func=ast.Attribute(value=ast.Name() as name, attr="run")):
                made = (one.value for one in program.list_own(name))
                if any(_names_of_session(one) & compiled for one in made):
                    return True
            case _:
                pass
    return False


def _names_of_session(value: ast.AST) -> set[str]:
    """Return the names in the arguments of a call that opens a session; empty for any other value."""
    match value:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in SESSIONS:
            given = (*value.args, *(one.value for one in value.keywords))
            return {inner.id for one in given for inner in walk(one) if isinstance(inner, ast.Name)}
        case _:
            return set()


def _list_compiled(node: ast.AST, compilers: set[str]) -> Iterator[str]:
    """Yield the names that a call of the compiler gets as arguments."""
    if not isinstance(node, ast.Call):
        return
    function = node.func
    while isinstance(function, ast.Attribute):
        function = function.value
    if isinstance(function, ast.Name) and function.id in compilers:
        yield from (one.id for one in node.args if isinstance(one, ast.Name))
