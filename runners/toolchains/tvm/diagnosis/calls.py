"""Compare a call of a compiled Relax function with the signature that the text of the testcase declares. Pure.

TVM's virtual machine checks each argument, and its message contains the parameter and the annotation. A pass that
wrongly changes a signature gives the same message. So the annotation must be in the testcase's own text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from runners.core.findings.calls import LeftOut, NoFunction, OtherType
from runners.core.protocol import Testcase
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.wrong_call import WrongCall, confirm_wrong_call, find_rejection
from runners.toolchains.tvm.diagnosis.programs import Change, parse_programs, replace_expressions

MAX_NAMES = 4

_REJECTED = re.compile(
    r"(?:\((?P<passed>\d{1,9}) vs\. (?P<wanted>\d{1,9})\)[^\n]{0,40})?"
    r"ErrorContext\(fn=(?P<function>\w{1,200}), loc=param\[(?P<place>\d{1,3})\], param=(?P<name>\w{1,200}), "
    r"annotation=(?P<declared>R\.Tensor\([^\n]{0,400}\))\)\s+"
    r"(?:expect Tensor with (?P<property>dtype|ndim) \S{1,40} but get (?P<given>[\w.]{1,40})"
    r"|match_cast error,\s+shape\[(?P<axis>\d{1,2})\])"
)
_NO_FUNCTION = re.compile(r"Module has no function '(?P<name>\w{1,200})'")


def check_call(failure: Failure, means: Means) -> Diagnosis:
    """Look for a call that the declared signature does not allow. Run the testcase with the call corrected."""
    seen = failure.seen
    said = f"{seen.signature.message if seen.signature is not None else ''}\n{seen.excerpt}"
    for file, tree in parse_programs(failure.testcase):
        if (left_out := _find_left_out(failure.testcase, file, tree, said)) is not None:
            return confirm_wrong_call(left_out, failure, means)
    if find_rejection(failure) is None:
        return NOTHING_FOUND
    for file, tree in parse_programs(failure.testcase):
        wrong = _find_wrong_argument(failure.testcase, file, tree, said) or _find_absent_function(
            failure.testcase, file, tree, said
        )
        if wrong is not None:
            return confirm_wrong_call(wrong, failure, means)
    return NOTHING_FOUND


# ------------------------------------------------------------------------------------------- options


_OPTIONS = ((re.compile(r"Undefined variable: metadata\b"), "script", "show_meta", "metadata"),)
"""An error, the method whose result is incomplete by default, the parameter that completes it, and the missing part.

``IRModule.script`` documents ``show_meta``; the printed text ends with "Metadata omitted. Use show_meta=True".
"""


def _find_left_out(testcase: Testcase, file: str, tree: ast.Module, said: str) -> WrongCall | None:
    """Return the calls whose result lacks what the error needs, corrected by the parameter that includes it."""
    for error, method, parameter, part in _OPTIONS:
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
            and not any(one.arg in (parameter, None) for one in node.keywords)
        ]
        if not calls or error.search(said) is None:
            continue
        rows = testcase.files[file].split("\n")
        for call in sorted(calls, key=_find_call_end, reverse=True):
            row, column = _find_call_end(call)
            line = rows[row - 1].encode()  # the columns of a syntax tree count bytes
            given = ", " if call.args or call.keywords else ""
            before = line[: column - 1].rstrip(b", ") if given else line[: column - 1]
            rows[row - 1] = f"{before.decode()}{given}{parameter}=True{line[column - 1 :].decode()}"
        mended = msgspec.structs.replace(testcase, files={**testcase.files, file: "\n".join(rows)})
        return WrongCall(
            call=LeftOut(function=method, name=part, option=f"{parameter}=True"),
            mended=(mended,),
        )
    return None


def _find_call_end(call: ast.Call) -> tuple[int, int]:
    return call.end_lineno or 0, call.end_col_offset or 0


# ------------------------------------------------------------------------------------------- arguments


@dataclass(frozen=True, slots=True)
class _Tensor:
    """An annotation ``R.Tensor``. A dynamic extent is kept as its text."""

    shape: tuple[int | str, ...]
    dtype: str


def _find_wrong_argument(testcase: Testcase, file: str, tree: ast.Module, said: str) -> WrongCall | None:
    told = _REJECTED.search(said)
    declared = _read_annotation(told["declared"]) if told is not None else None
    if told is None or declared is None or declared not in _list_declared(tree, told["name"]):
        return None
    place, function = int(told["place"]), told["function"]
    if not any(_has_argument(call, place) for call in _list_calls(tree, function)):
        return None
    text, extents = testcase.files[file], _list_extents(declared)
    axis = int(told["axis"] or 0)
    if told["axis"] and told["wanted"] and axis < len(extents):
        extents[axis] = _find_same_extent(tree, str(declared.shape[axis]), place) or int(told["wanted"])
    given = f"{told['property']} {told['given']}" if told["given"] else f"shape[{told['axis']}] = {told['passed']}"
    changes = _mend_calls(text, tree, function, place, extents, declared)
    others = [
        change
        for at, one in _list_other_tensors(tree, told["name"], place, declared)
        for change in _mend_calls(text, tree, function, at, _list_extents(one), one)
    ]
    # The check stops at the first wrong argument. Others may be as wrong: ``np.random.rand`` gives float64 for all.
    tried = [changes, [*changes, *others]] if others else [changes]
    return WrongCall(
        call=OtherType(function=function, argument=place + 1, declared=told["declared"], given=given),
        mended=tuple(replace_expressions(testcase, file, one) for one in tried),
    )


def _list_other_tensors(tree: ast.Module, name: str, place: int, tensor: _Tensor) -> Iterator[tuple[int, _Tensor]]:
    """Yield the other tensors of the first function with this parameter at this place, each with its place."""
    for node in ast.walk(tree):
        parameters = node.args.args if isinstance(node, ast.FunctionDef) else []
        if len(parameters) > place and parameters[place].arg == name:
            declared = [_read_tensor(one.annotation) for one in parameters]
            if declared[place] == tensor:
                yield from ((at, one) for at, one in enumerate(declared) if one is not None and at != place)
                return


def _mend_calls(
    text: str, tree: ast.Module, function: str, place: int, extents: Sequence[_Extent], declared: _Tensor
) -> list[Change]:
    """Return the argument at ``place`` of each call, with the text that corrects it."""
    changes: list[Change] = []
    for call in (one for one in _list_calls(tree, function) if _has_argument(one, place)):
        own = [_write_extent(text, call, *one) if isinstance(one, tuple) else one for one in extents]
        changes.append((call.args[place], _write_argument(own, declared.dtype)))
    return changes


_Extent = int | tuple[int, int] | None
"""An extent of a corrected argument: a number, the extent of another argument's axis, or the given one."""


def _list_extents(tensor: _Tensor) -> list[_Extent]:
    return [one if isinstance(one, int) else None for one in tensor.shape]


def _find_same_extent(tree: ast.Module, symbol: str, place: int) -> tuple[int, int] | None:
    """Return argument and axis of the first other parameter that declares a dynamic extent. None without one.

    Two parameters with one symbol have the same extent in each call. It may differ between calls.
    """
    for declared in _list_signatures(tree):
        own = declared[place] if len(declared) > place else None
        if own is None or symbol not in own.shape:
            continue
        for position, one in enumerate(declared[:place]):
            if one is not None and symbol in one.shape:
                return position, one.shape.index(symbol)
    return None


def _list_signatures(tree: ast.Module) -> Iterator[list[_Tensor | None]]:
    """Yield the annotations of the parameters of each function, and of each specification of layers, in order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield [_read_tensor(one.annotation) for one in node.args.args]
        elif isinstance(node, ast.Dict):
            yield [_read_tensor(value) for value in node.values]


def _write_extent(text: str, call: ast.Call, position: int, axis: int) -> str | None:
    """Return an expression for an extent of another argument of a call. None if the call does not show it."""
    given = ast.get_source_segment(text, call.args[position]) if _has_argument(call, position) else None
    return None if given is None or "{" in given else f"({given}).shape[{axis}]"


def _read_annotation(text: str) -> _Tensor | None:
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _read_tensor(call)


def _read_tensor(node: ast.expr | None) -> _Tensor | None:
    """Read ``R.Tensor((4, n), "float32")``. None for another annotation, or one without a shape or a type."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "Tensor":
        return None
    words = {word.arg: word.value for word in node.keywords}
    shape = node.args[0] if node.args else words.get("shape")
    dtype = node.args[1] if len(node.args) > 1 else words.get("dtype")
    if not isinstance(shape, ast.Tuple | ast.List) or not isinstance(dtype, ast.Constant):
        return None
    extents = [extent for one in shape.elts if (extent := _read_extent(one)) is not None]
    return _Tensor(tuple(extents), str(dtype.value)) if len(extents) == len(shape.elts) else None


def _read_extent(node: ast.expr) -> int | str | None:
    """Read an extent: ``4``, ``T.int64(4)``, or the name of a dynamic extent, with or without quotes.

    None for an expression. Expressions are not written out, because a stranger's tree may be too deep for recursion.
    """
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        node = node.args[0]
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else str(node.value)
    return node.id if isinstance(node, ast.Name) else None


def _list_declared(tree: ast.Module, name: str) -> list[_Tensor]:
    """List the annotations of parameters of this name: in functions, a builder, or exported layers (`nn.spec`)."""
    found: list[_Tensor | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == name:
            found.append(_read_tensor(node.annotation))
        elif isinstance(node, ast.Call) and len(node.args) >= 2 and _is_text(node.args[0], name):
            found.append(_read_tensor(node.args[1]))
        elif isinstance(node, ast.Dict):
            named = zip(node.keys, node.values, strict=True)
            found += [_read_tensor(value) for key, value in named if key is not None and _is_text(key, name)]
    return [one for one in found if one is not None]


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _list_calls(tree: ast.Module, function: str) -> list[ast.Call]:
    """List the calls ``vm["main"](…)``, including calls through a variable: ``run = vm["main"]``."""
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_function(node.value, function)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [
        call
        for call in calls
        if _is_function(call.func, function) or (isinstance(call.func, ast.Name) and call.func.id in names)
    ]


def _is_function(node: ast.expr, function: str) -> bool:
    return isinstance(node, ast.Subscript) and _is_text(node.slice, function)


def _has_argument(call: ast.Call, place: int) -> bool:
    return len(call.args) > place and not any(isinstance(one, ast.Starred) for one in call.args[: place + 1])


def _write_argument(extents: Sequence[int | str | None], dtype: str) -> str:
    """Return an expression with a slot for the given argument: its values, with the declared shape and type.

    A dynamic extent is kept; without a corresponding axis, it becomes 1. A text is an expression for an extent. It is
    evaluated beside the argument, so it may use names of the calling function.
    """
    told = next((one for one in extents if isinstance(one, str)), None)
    named, passed = ("a, n", f", {told}") if told is not None else ("a", "")
    shape = "".join(
        f"{f'a.shape[{axis}] if len(a.shape) == {len(extents)} else 1' if extent is None else extent}, "
        for axis, extent in enumerate("n" if isinstance(one, str) else one for one in extents)
    )
    return (
        f'(lambda {named}: __import__("tvm").runtime.tensor(__import__("numpy").resize(a.numpy(), '
        f'({shape})).astype("{dtype}"), a.device))({{}}{passed})'
    )


# ------------------------------------------------------------------------------------------- functions


def _find_absent_function(testcase: Testcase, file: str, tree: ast.Module, said: str) -> WrongCall | None:
    told = _NO_FUNCTION.search(said)
    if told is None:
        return None
    asked = told["name"]
    names = [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript) and _is_text(node.slice, asked)]
    declared = list(dict.fromkeys(_list_functions(tree)))
    if not names or len(declared) != 1 or asked in declared:
        return None
    return WrongCall(
        call=NoFunction(function=asked, functions=tuple(declared[:MAX_NAMES])),
        mended=(replace_expressions(testcase, file, [(name, f'"{declared[0]}"') for name in names]),),
    )


def _list_functions(tree: ast.Module) -> Iterator[str]:
    """List the Relax functions that a text declares: ``@R.function`` and ``with builder.function("main")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                plain = decorator.func if isinstance(decorator, ast.Call) else decorator
                if isinstance(plain, ast.Attribute) and plain.attr == "function" and not _is_private(decorator):
                    yield node.name
        elif isinstance(node, ast.With):
            for call in (item.context_expr for item in node.items):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
                    name = call.args[0]
                    if call.func.attr == "function" and isinstance(name, ast.Constant):
                        yield str(name.value)


def _is_private(decorator: ast.expr) -> bool:
    words = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(word.arg == "private" and isinstance(word.value, ast.Constant) and word.value.value for word in words)
