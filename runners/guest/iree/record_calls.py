"""Run a Python testcase, and record the arguments and results of each call of a compiled function.

    python launch.py iree.record_calls repro.py [ARGUMENT…]

The testcase runs unmodified. Each call is written as a line of JSON to the file that REPROBOT_FINDINGS names:
``{"kind": "call", "function": name, "inputs": [text], "results": [text]}``. A text is a value as ``iree-run-module``
takes and prints values: ``2x2xf32=1 2 3 4``, or ``4`` for a scalar. A call with other values, a call that changes its
arguments, and each call beyond the limit, gives ``{"kind": "unknown-call"}``. A module that the testcase compiles
from a string gives ``{"kind": "module", "text": text}``. The lines are claims: the testcase runs in the same process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from runners.guest import forget_modules

MAX_CALLS, MAX_MODULES = 10, 8
MAX_ELEMENTS, MAX_TEXT = 9_000, 100_000
TYPES = {
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
    "bool": "i1",
}

Json = dict[str, Any]


def main(arguments: list[str]) -> int:
    path, *rest = arguments
    file = os.path.abspath(path)
    findings = os.environ.pop("REPROBOT_FINDINGS", "")
    try:
        _watch_calls(findings)
    except Exception:
        return 0  # the release lacks such a function, or cannot be imported, so no call can be recorded
    with contextlib.suppress(Exception):  # a testcase that runs a compiled module needs no compiler
        _watch_modules(findings)
    forget_modules()
    sys.argv = [path, *rest]
    sys.path[0] = os.path.dirname(file)
    module = ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    with open(file, "rb") as source:
        code = compile(source.read(), file, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102  # the whole purpose; this runs inside the sandbox
    return 0


def _watch_calls(findings: str) -> None:
    invoker: Any = importlib.import_module("iree.runtime.function").FunctionInvoker
    plain: Callable[..., Any] = invoker.__call__
    left = [MAX_CALLS]
    # Bound now, because a testcase may add modules of the same names after `forget_modules`.
    dump, write, describe = json.dumps, open, _describe_value

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        inputs = [describe(one) for one in args]
        returned = plain(self, *args, **kwargs)
        results = [describe(one) for one in (returned if isinstance(returned, tuple) else (returned,))]
        name = self.vm_function.name
        # The results do not show what the call wrote into its arguments.
        keeps_inputs = left[0] > 1 and inputs == [describe(one) for one in args]
        known = keeps_inputs and not kwargs and None not in inputs and None not in results
        told = {"kind": "call", "function": name, "inputs": inputs, "results": results}
        if left[0]:
            left[0] -= 1
            with write(findings, "a", encoding="ascii") as file:
                file.write(dump(told if known else {"kind": "unknown-call"}) + "\n")
        return returned

    invoker.__call__ = call


def _watch_modules(findings: str) -> None:
    """Record the texts of modules, which the testcase may compose. The compiler may be missing."""
    left, last = [MAX_MODULES], [""]
    dump, write = json.dumps, open

    def watch(plain: Callable[..., Any]) -> Callable[..., Any]:
        def compile_str(text: Any, *args: Any, **kwargs: Any) -> Any:
            said = text.decode("ascii", "replace") if isinstance(text, bytes) else text
            if left[0] and isinstance(said, str) and len(said) <= MAX_TEXT and said != last[0]:
                left[0] -= 1
                last[0] = said
                with write(findings, "a", encoding="ascii") as file:
                    file.write(dump({"kind": "module", "text": said}) + "\n")
            return plain(text, *args, **kwargs)

        return compile_str

    # Each of them may be a different wrapper of the same function.
    for name in ("iree.compiler.tools.core", "iree.compiler.tools", "iree.compiler"):
        home: Any = importlib.import_module(name)
        home.compile_str = watch(home.compile_str)


def _describe_value(value: Any) -> str | None:
    """Return a value as text. None for a value that cannot be passed exactly to `iree-run-module`."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return f"{value!r}"
    try:
        array = value.to_host() if hasattr(value, "to_host") else value
        element = TYPES.get(str(array.dtype))
        flat = array.reshape(-1)[: MAX_ELEMENTS + 1]
        numbers, texts = flat.tolist(), [str(one) for one in flat]  # of the array's type, as short as exact
    except Exception:
        return None
    if element is None or not 0 < len(numbers) <= MAX_ELEMENTS:
        return None
    shape = "".join(f"{size}x" for size in array.shape)
    if element[0] in "iu":  # i1 is read and printed as bytes: 00 01
        texts = [f"{int(one):02x}" if element == "i1" else str(int(one)) for one in numbers]
    return f"{shape}{element}=" + " ".join(texts)
