"""Turn MLIR in a string of a Python program into a file, for the diagnosers that read files. Pure, by the text.

``iree-compile`` compiles the file, which has the program's line numbers, before the program runs. A diagnoser repairs
the file. Then the program runs with the repaired string. Steps that only compile run unchanged.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from runners.core.findings.record import rename_file
from runners.core.protocol import Observation, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.iree.reports.inputs import list_functions
from runners.toolchains.iree.rewriting import MODULE_TEXT

MAX_CHARS, MAX_MODULES = 200_000, 4
_DEFAULT_BACKEND = "llvm-cpu"

Diagnose = Callable[[Failure, Means], Diagnosis]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedModule:
    """An MLIR module in a string of a Python program."""

    program: Testcase
    source: str
    """The file of the program."""
    text: str
    above: int
    """Number of lines of the program above the module."""
    span: tuple[int, int]
    """Offsets of the literal in the program."""
    is_bytes: bool
    flags: tuple[str, ...]
    """The flags with which the program compiles."""
    called: str
    """The function of the module that the program calls. Empty if this is uncertain."""

    @property
    def file(self) -> str:
        """The file that contains the module in `as_file`."""
        return f"{self.source}.mlir"

    def as_file(self) -> Testcase:
        """Return the testcase with the module as a file, compiled before the program runs."""
        compiling = ("iree-compile", *self.flags, self.file, "-o", f"{self.source}.vmfb")
        called = (f"--function={self.called}",) if self.called else ()
        return msgspec.structs.replace(
            self.program,
            kind=TestcaseKind.COMMAND_LINE,
            files={**self.program.files, self.file: "\n" * self.above + self.text},
            steps=(compiling, *((*step, *called) for step in self.program.steps)),
        )

    def put_back(self, changed: Testcase) -> Testcase:
        """Return the testcase to run for a changed `as_file`: the program, if one of the steps runs it."""
        if not any(step[0] == "python" and self.source in step for step in changed.steps):
            return changed
        begin, end = self.span
        code, text = self.program.files[self.source], changed.files[self.file][self.above :]
        if text != self.text:
            code = code[:begin] + repr(text.encode() if self.is_bytes else text) + code[end:]
        return msgspec.structs.replace(self.program, files={**self.program.files, self.source: code})


def read_embedded(diagnose: Diagnose) -> Diagnose:
    """Return the diagnoser of Python programs that does what ``diagnose`` does for MLIR in files."""

    def diagnose_program(failure: Failure, means: Means) -> Diagnosis:
        controls: list[Observation] = []
        for module in list_embedded(failure.testcase):
            found = _diagnose_module(diagnose, module, failure, means)
            controls += found.controls
            if found.findings:
                return replace(found, controls=tuple(controls))
        return Diagnosis(controls=tuple(controls)) if controls else NOTHING_FOUND

    return diagnose_program


def compile_only(diagnose: Diagnose) -> Diagnose:
    """Return the diagnoser that sees only the compilations of a testcase."""

    def diagnose_compilation(failure: Failure, means: Means) -> Diagnosis:
        compiling = tuple(step for step in failure.testcase.steps if step[0] == "iree-compile")
        testcase = msgspec.structs.replace(failure.testcase, steps=compiling)
        return diagnose(replace(failure, testcase=testcase), means)

    return diagnose_compilation


def _diagnose_module(diagnose: Diagnose, module: EmbeddedModule, failure: Failure, means: Means) -> Diagnosis:
    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        return means.run(version, variant, module.put_back(testcase), device)

    def expect(version: str, variant: Variant, testcase: Testcase, device: str) -> None:
        means.expect(version, variant, module.put_back(testcase), device)

    found = diagnose(replace(failure, testcase=module.as_file()), replace(means, run=run, expect=expect))
    return replace(found, findings=tuple(rename_file(one, module.file, module.source) for one in found.findings))


def list_embedded(testcase: Testcase) -> tuple[EmbeddedModule, ...]:
    """Return the modules in the strings of a Python program of one file."""
    sources = [name for name in testcase.files if name.endswith(".py")]
    if testcase.kind is not TestcaseKind.PYTHON or len(sources) != 1:
        return ()
    code = testcase.files[sources[0]]
    tree = _parse(code)
    if tree is None:
        return ()
    modules = list(islice(_list_modules(tree), MAX_MODULES + 1))
    if len(modules) > MAX_MODULES:
        return ()
    flags = _read_flags(tree)
    return tuple(
        EmbeddedModule(
            program=testcase,
            source=sources[0],
            text=text,
            above=node.lineno - 1 + code[begin:end].startswith(('"""\\\n', "'''\\\n")),
            span=(begin, end),
            is_bytes=isinstance(node.value, bytes),
            flags=flags,
            called=_find_called(tree, text),
        )
        for node, text in modules
        for begin, end in [_find_span(code, node)]
    )


def list_read(testcase: Testcase) -> tuple[EmbeddedModule, ...]:
    """Return the only MLIR file of a testcase if its Python program reads the file, to examine the calls.

    `EmbeddedModule.put_back` does not apply, because the program contains no literal.
    """
    sources = [name for name in testcase.files if name.endswith(".py")]
    texts = [(name, text) for name, text in testcase.files.items() if name.endswith(".mlir")]
    tree = _parse(testcase.files[sources[0]]) if len(sources) == 1 else None
    if testcase.kind is not TestcaseKind.PYTHON or tree is None or len(texts) != 1 or list_embedded(testcase):
        return ()
    (name, text) = texts[0]
    if name.rpartition("/")[2] not in testcase.files[sources[0]]:
        return ()
    return (
        EmbeddedModule(
            program=testcase,
            source=sources[0],
            text=text,
            above=0,
            span=(0, 0),
            is_bytes=False,
            flags=_read_flags(tree),
            called=_find_called(tree, text),
        ),
    )


def find_composer(testcase: Testcase) -> str | None:
    """Return the file of a Python program that composes its module's text at run time. None for other programs."""
    sources = [name for name in testcase.files if name.endswith(".py")]
    if testcase.kind is not TestcaseKind.PYTHON or len(sources) != 1:
        return None
    return sources[0] if "compile_str" in testcase.files[sources[0]] else None


def make_composed(testcase: Testcase, source: str, text: str) -> EmbeddedModule:
    """Return the module that a program composed, to examine its calls. `EmbeddedModule.put_back` does not apply."""
    tree = _parse(testcase.files[source])
    return EmbeddedModule(
        program=testcase,
        source=source,
        text=text,
        above=0,
        span=(0, 0),
        is_bytes=False,
        flags=_read_flags(tree) if tree is not None else (),
        called="",
    )


def _parse(code: str) -> ast.Module | None:
    if len(code) > MAX_CHARS or "\r" in code or "\f" in code:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes such as `'\\d'`
            return ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _list_modules(tree: ast.Module) -> Iterator[tuple[ast.Constant, str]]:
    """Yield the literals that contain a module. The parts of an f-string are not literals."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in parts:
            continue
        value = node.value
        if isinstance(value, bytes) and value.isascii():
            value = value.decode("ascii")
        if isinstance(value, str) and MODULE_TEXT.search(value):
            yield node, value


def _find_span(code: str, node: ast.Constant) -> tuple[int, int]:
    """Return the offsets of a literal. Columns of the syntax tree count bytes."""
    lines = code.split("\n")

    def locate(line: int, column: int) -> int:
        above = sum(len(one) + 1 for one in lines[: line - 1])
        return above + len(lines[line - 1].encode()[:column].decode())

    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return locate(node.lineno, node.col_offset), locate(node.end_lineno, node.end_col_offset)


def _read_flags(tree: ast.Module) -> tuple[str, ...]:
    """Return the flags of the program's compiling call, as far as they are literals."""
    given = {word.arg: word.value for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords}
    backends = list(_list_strings(given.get("target_backends"))) or [_DEFAULT_BACKEND]
    types = _list_strings(given.get("input_type"))
    return (
        *(f"--iree-hal-target-backends={backend}" for backend in backends),
        *(f"--iree-input-type={kind}" for kind in types),
        *_list_strings(given.get("extra_args")),
    )


def _list_strings(node: ast.expr | None) -> Iterator[str]:
    parts: Iterable[ast.expr | None] = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _find_called(tree: ast.Module, text: str) -> str:
    """Return the only function of the module whose name occurs in the program as an attribute or a string."""
    names = {one.name for one in list_functions(text) if not one.private}
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            used.add(node.value.rpartition(".")[2])
    called: Sequence[str] = sorted(names & used)
    return called[0] if len(called) == 1 else ""
