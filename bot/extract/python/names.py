"""Find the names, modules and files that a Python testcase binds and needs, without running the testcase."""

from __future__ import annotations

import ast
import builtins
import dis
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType

from bot.extract.python.parse import parse_python, walk
from bot.extract.vocabulary import join_words

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__builtins__", "__spec__", "WindowsError"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleNames:
    """The module-level names of a text."""

    bound: frozenset[str]
    free: tuple[str, ...]
    """Names used and bound nowhere, in order of first use. Empty after ``from x import *``: it may bind any name."""


NO_NAMES = ModuleNames(bound=frozenset(), free=())


def read_names(code: str) -> ModuleNames:
    """Return the names of a module's text; `NO_NAMES` if the text does not compile.

    The compiler itself resolves the scopes: the text is compiled, never run, and its instructions are read. The
    `symtable` module gives the same answer, in time quadratic in the number of functions.
    """
    tree = parse_python(code)
    if tree is None:
        return NO_NAMES
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = compile(tree, "repro.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return NO_NAMES
    bound: set[str] = set()
    used: set[str] = set()
    for block in _list_code_objects(top):
        own: set[str] = set()
        loaded: set[str] = set()
        for instruction in dis.get_instructions(block):
            match instruction.opname:
                case "STORE_GLOBAL":
                    bound.add(instruction.argval)
                case "STORE_NAME":
                    own.add(instruction.argval)
                case "LOAD_NAME" | "LOAD_GLOBAL" | "LOAD_FROM_DICT_OR_GLOBALS":
                    loaded.add(instruction.argval)
        if block is top:
            bound |= own
        used |= loaded if block is top else loaded - own
    unbound = used - bound - _BUILTINS
    if any(isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names) for n in tree.body):
        unbound = set()
    order = dict.fromkeys(n.id for n in walk(tree) if isinstance(n, ast.Name) and n.id in unbound)
    return ModuleNames(bound=frozenset(bound), free=tuple(order))


def _list_code_objects(top: CodeType) -> Iterator[CodeType]:
    pending = [top]
    while pending:
        block = pending.pop()
        yield block
        pending.extend(c for c in block.co_consts if isinstance(c, CodeType))


# ---------------------------------------------------------------------------------------------- modules


def list_imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the dotted name of each imported module (with its dots if relative), and whether the import must succeed.

    An import inside ``try`` may fail: the text handles the failure.
    """
    guarded = {
        id(inner)
        for node in walk(tree)
        if isinstance(node, ast.Try) and node.handlers
        for statement in node.body
        for inner in walk(statement)
    }
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in guarded
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), id(node) not in guarded


def is_stdlib(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


# ---------------------------------------------------------------------------------------------- files

_READERS = {
    *("onnx.load", "onnx.load_model", "torch.load", "torch.jit.load", "np.load", "numpy.load", "np.fromfile"),
    *("numpy.fromfile", "np.loadtxt", "numpy.loadtxt", "np.genfromtxt", "np.memmap", "cv2.imread", "Image.open"),
    *("load_model", "keras.models.load_model", "tf.keras.models.load_model", "tf.saved_model.load"),
    *("torch.export.load", "pd.read_csv", "safetensors.torch.load_file", "load_file", "ort.InferenceSession"),
    *("onnxruntime.InferenceSession", "ModelProto.FromFile", "tf.lite.Interpreter", "onnx.checker.check_model"),
    *("torchvision.io.read_image", "Path.read_text"),
    *join_words(lambda words: words.python.readers),
}
_READING_METHODS = ("read_text", "read_bytes")
_WRITERS = {
    *("onnx.save", "onnx.save_model", "torch.save", "torch.jit.save", "np.save", "np.savez", "numpy.save"),
    *("torch.onnx.export", "torch.export.save", "cv2.imwrite", "tofile", "save", "write_text", "write_bytes"),
    *("savez", "savez_compressed", "onnx.export", "convert", "print_to_file", "save_model", "SaveModel"),
    *("save_file", "dump_to_file", "to_file", "export"),
    *join_words(lambda words: words.python.writers),
}
_NETWORK = ("from_pretrained", "download_testdata", "urlretrieve", "urlopen", "hf_hub_download", "snapshot_download")


def find_files_read(tree: ast.AST) -> tuple[str, ...]:
    """Return the literal paths that calls read. Paths that the text itself writes are left out."""
    constants = dict(_find_string_constants(tree))
    imported = dict(_find_imported_names(tree))
    read: dict[str, None] = {}
    written: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            written.update(_find_command_outputs(node, constants))
        if not isinstance(node, ast.Call):
            continue
        called = read_dotted_name(node.func)
        tail = called.rpartition(".")[2]
        if tail in _SHELLS and node.args:
            command = _read_command(node.args[0], constants) or ""
            written.update(_find_shell_outputs(command))
            read.update(dict.fromkeys(_find_shell_inputs(command)))
        paths = [p for p in (_read_path(a, constants) for a in _list_path_arguments(node)) if p]
        written.update(_find_named_outputs(node, constants))
        if tail == "open" and called in ("open", "io.open"):
            opened = _read_path(node.args[0], constants) if node.args else next(iter(paths), None)
            (written.update if _opens_to_write(node) else read.update)(dict.fromkeys([opened] if opened else []))
        elif {called, _resolve(called, imported)} & _READERS or (tail in _READING_METHODS and not node.args):
            read.update(dict.fromkeys(paths[:1] or _read_receiver_path(node, constants)))
        elif called in _WRITERS or tail in _WRITERS:
            written.update(paths or _read_receiver_path(node, constants))
        elif tail in _NETWORK:
            read.update(dict.fromkeys(paths[:1]))
    made = {path.removeprefix("./") for path in written}
    return tuple(path for path in read if path.removeprefix("./") not in made and not _is_no_file(path))


def _find_imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds, and the full name of what it stands for."""
    for node in walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((one.asname, one.name) for one in names if one.asname)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from ((one.asname or one.name, f"{module}.{one.name}") for one in names)


def _resolve(called: str, imported: Mapping[str, str]) -> str:
    """Return the full name of a function that the program calls by a name of its own."""
    first, dot, rest = called.partition(".")
    return f"{imported.get(first, first)}{dot}{rest}"


def _is_no_file(path: str) -> bool:
    return path in ("/dev/null", "-", "") or path.startswith("/proc/")


def read_dotted_name(node: ast.AST) -> str:
    """Return ``a.b.c`` for an attribute chain; only the attributes if the chain does not start at a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def _list_path_arguments(node: ast.Call) -> Iterable[ast.expr]:
    yield from node.args
    yield from (keyword.value for keyword in node.keywords if keyword.arg in _PATH_KEYWORDS)


def _find_named_outputs(node: ast.Call, constants: dict[str, str]) -> Iterator[str]:
    """Yield the paths of keywords that name an output: ``compile_str(…, output_file="a.vmfb")``."""
    values = (keyword.value for keyword in node.keywords if keyword.arg in _OUTPUT_KEYWORDS)
    yield from (path for value in values if (path := _read_path(value, constants)) is not None)


_OUTPUT_KEYWORDS = {"output_file", "output", "out", "output_path", "outfile", "save_path", "dst"}


def _find_command_outputs(node: ast.List | ast.Tuple, constants: dict[str, str]) -> Iterator[str]:
    """Yield the words after ``-o`` in a list of words, and in ``--output=@c.npy``."""
    for word in node.elts:
        if isinstance(word, ast.Constant) and isinstance(word.value, str):
            yield from _OUTPUT_WORD.findall(word.value)
    for flag, value in pairwise(node.elts):
        named = isinstance(flag, ast.Constant) and flag.value in ("-o", "--output")
        if named and (path := _read_path(value, constants)) is not None:
            yield path


_OUTPUT_WORD = re.compile(r"^--?o(?:ut|utput)?=@?(\S{1,200})$")
"""The path in a word such as ``--output=@c.npy``."""


_SHELLS = {"system", "popen", "Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
"""Functions of ``os`` and ``subprocess`` that take a command as one text."""


def _read_command(node: ast.expr, constants: dict[str, str]) -> str | None:
    """Return the text of a command, even if the program splits the text into words."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="shlex"), attr="split"), args=[text, *_]):
            return _read_path(text, constants)
        case ast.Call(func=ast.Attribute(value=text, attr="split")):
            return _read_path(text, constants)
        case _:
            return _read_path(node, constants)


def _find_shell_outputs(command: str) -> Iterator[str]:
    """Yield the files that a command writes: after ``-o``, ``--output`` or ``>``."""
    try:
        words = shlex.split(command)
    except ValueError:
        return  # an open quote: a shell refuses the command
    for word, following in pairwise([*words, ""]):
        if word in ("-o", "--output", ">", ">>"):
            yield following
        elif word.startswith("--output="):
            yield word.partition("=")[2]


def _find_shell_inputs(command: str) -> Iterator[str]:
    """Yield the programs of a compiler that a command reads."""
    written = set(_find_shell_outputs(command))
    for word in command.split():
        if word.endswith(_PROGRAMS) and not word.startswith("-") and word not in written:
            yield word


_PROGRAMS = (".mlir", ".mlirbc", ".stablehlo")
_PATH_KEYWORDS = {"file", "path", "filename", "f", "fname", "model_path", "filepath"}


_PATH_CALLS = {"os.path.join", "Path", "pathlib.Path", "str", "open"}


def _opens_to_write(node: ast.Call) -> bool:
    modes = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
    return any(isinstance(m, ast.Constant) and isinstance(m.value, str) and set(m.value) & set("wax") for m in modes)


def _find_string_constants(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            path = _read_path(node.value, {})
            if path is not None:
                yield node.targets[0].id, path


def _read_path(node: ast.expr, constants: dict[str, str], depth: int = 0) -> str | None:
    """Return the path that an expression gives; None if the text does not contain the path."""
    if depth > 8:
        return None
    match node:
        case ast.Constant(value=str() as value):
            return value if "\n" not in value and len(value) <= 400 else None
        case ast.Name(id=name):
            return constants.get(name)
        case ast.Call(func=func, args=args) if read_dotted_name(func) in _PATH_CALLS:
            used = args[:1] if read_dotted_name(func) == "open" else args
            parts = [_read_path(a, constants, depth + 1) for a in used]
            known = [p for p in parts if p is not None]
            return "/".join(known) if known and len(known) == len(parts) else None
        case ast.BinOp(left=left, op=ast.Div() | ast.Add() as op, right=right):
            a, b = _read_path(left, constants, depth + 1), _read_path(right, constants, depth + 1)
            joint = "/" if isinstance(op, ast.Div) else ""
            return f"{a}{joint}{b}" if a is not None and b is not None else None
        case _:
            return None


def _read_receiver_path(node: ast.Call, constants: dict[str, str]) -> list[str]:
    """Return ``x`` for ``Path("x").read_text()``."""
    path = _read_path(node.func.value, constants) if isinstance(node.func, ast.Attribute) else None
    return [path] if path else []
