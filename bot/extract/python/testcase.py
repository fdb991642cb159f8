"""The Python pieces of an issue → a testcase with its claim."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue
from bot.extract.claim.failure import fails_at_definition, list_failure_pieces
from bot.extract.claim.kinds.classify import calls_it_an_error
from bot.extract.claim.values.shown import list_shown_values
from bot.extract.claim.versions import Passage, find_versions
from bot.extract.intent import is_raised_by_compiler
from bot.extract.links import add_addresses
from bot.extract.parsed_issue import ParsedIssue, choose_device, make_claim, make_span
from bot.extract.python.assemble import (
    MAIN_FILE,
    Ambiguous,
    AssemblyContext,
    Program,
    assemble_program,
    collect_words,
)
from bot.extract.python.calls.script_arguments import (
    find_arguments,
    list_files,
    list_read_words,
    needs_arguments,
    reads_arguments,
)
from bot.extract.python.parse import is_docstring, parse_python, walk
from bot.extract.python.reference.printed_rows import find_printed_rows
from bot.extract.types import CALL, DEFINITIONS_ONLY, PRODUCT, Extraction, Missing, NoRepro, Repair, Repro
from bot.extract.vocabulary import vocabulary_of
from runners.core.protocol import Claim, ClaimKind, Testcase, TestcaseKind
from runners.core.toolchain.reports import DeviceText, ReportAge


def extract_python(parsed: ParsedIssue, toolchain: str, allowed: Mapping[str, str] | None) -> Extraction | None:
    """Return the Python testcase of an issue, or None if the issue contains no Python.

    ``allowed`` extends the allow-list of imports (import name → distribution).
    """
    if (product := _find_product(parsed, toolchain)) is not None:
        reason = (
            f"The program is written for {product}, which contains a compiler of its own; no release here runs it."
        )
        missing = (Missing(kind=PRODUCT, name=product),)
        return NoRepro(reason=reason, claim=make_claim(parsed), toolchain=toolchain, missing=missing)
    versions = find_versions([Passage(text=parsed.prose)], parsed.toolchain)
    context = AssemblyContext(
        toolchain=toolchain,
        claim_words=_collect_claim_words(parsed),
        allowed=allowed,
        age=ReportAge(versions=versions, day=parsed.issue.created),
        prose=f"{parsed.issue.title}\n{parsed.prose}",
    )
    program, controls = assemble_program(parsed.pieces, context)
    match program:
        case None:
            return None
        case Ambiguous(lines=lines):
            places = " and ".join(f"line {first}" for first, _ in lines)
            reason = (
                f"The issue holds two unrelated programs ({places}) and does not say which one shows the failure."
            )
            return NoRepro(reason=reason, claim=make_claim(parsed), toolchain=toolchain)
        case Program():
            repro = _make_repro(parsed, toolchain, program, controls)
            return _reject_question(parsed, repro) or _reject_foreign(parsed, repro, allowed or {}) or repro


def _find_product(parsed: ParsedIssue, toolchain: str) -> str | None:
    """Return the product for which the Python of an issue is written; None if it imports the compiler, or neither."""
    names = vocabulary_of(toolchain).python
    code = "\n".join(piece.text for piece in parsed.pieces if piece.kind in _CODE)
    imported = {found[1] for found in _IMPORTED.finditer(code)}
    products = [product for package, product in names.products.items() if package in imported]
    return products[0] if products and not imported & names.packages else None


_CODE = (Kind.PYTHON, Kind.DEFINITIONS, Kind.QUOTED)
_IMPORTED = re.compile(r"^[ \t>]{0,20}(?:import|from)[ \t]+(\w+)", re.M)


def _reject_question(parsed: ParsedIssue, repro: Repro) -> NoRepro | None:
    """Refuse the excerpt of a question: names are missing, and the issue names no failure."""
    title = parsed.issue.title.strip()
    asks = title.endswith("?") or re.match(r"\W*(?:how|question|is there|can i)\b", title, re.I)
    incomplete = any(entry.kind == "name" for entry in repro.missing)
    if not (asks and incomplete and repro.claim.kind is ClaimKind.UNKNOWN):
        return None
    reason = "The issue asks a question and names no failure; its code is an excerpt."
    return NoRepro(reason=reason, claim=repro.claim, toolchain=parsed.toolchain)


def _reject_foreign(parsed: ParsedIssue, repro: Repro, allowed: Mapping[str, str]) -> NoRepro | None:
    """Refuse a program that never names the compiler, such as the same call in another framework.

    The compiler does not affect the end of such a program. A missing module, and a package that the operator allows,
    may call the compiler. Another package may call it if the quoted stack goes through the compiler, or if a comment
    names the compiler (``JAX_PLATFORMS=iree_cpu``): its plug-in is missing.
    """
    packages = vocabulary_of(repro.testcase.toolchain).python.packages
    named = re.compile("(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, sorted({*packages, *allowed}))) + ")", re.I)
    remarked = "\n".join([*repro.testcase.files.values(), *(" ".join(step) for step in repro.testcase.steps)])
    code = _REMARK.sub("", remarked)
    if repro.missing or not packages or named.search(code):
        return None
    through = next((name for found in _IMPORTED.finditer(code) if (name := found[1]) not in packages), None)
    raised = any(is_raised_by_compiler(parsed, piece.text) for piece in parsed.pieces)
    if through is not None and (raised or named.search(remarked)):
        reason = f"The program calls the compiler through `{through}`, which no environment here joins with it."
        missing = (Missing(kind=PRODUCT, name=through),)
        return NoRepro(reason=reason, claim=repro.claim, toolchain=parsed.toolchain, missing=missing)
    reason = "The program in the report never calls the compiler."
    missing = (Missing(kind=CALL, name="the code that calls the compiler"),)
    return NoRepro(reason=reason, claim=repro.claim, toolchain=parsed.toolchain, missing=missing)


_REMARK = re.compile(r"(?:(?<=\s)|^)#[^\n\"']*$", re.M)
"""A comment without quotes. One with quotes may be a part of a string."""


def _collect_claim_words(parsed: ParsedIssue) -> frozenset[str]:
    signature = parsed.signature
    quoted = f"{signature.message} {' '.join(signature.frames)}" if signature else ""
    return collect_words(f"{parsed.issue.title} {quoted}")


def _make_repro(parsed: ParsedIssue, toolchain: str, program: Program, controls: tuple[Program, ...]) -> Repro:
    text = DeviceText(python=program.code, title=parsed.issue.title, prose=parsed.prose)
    devices = parsed.vocabulary.read_devices(text)
    spans = [make_span(MAIN_FILE, unit.piece) for unit in program.units]
    spans += [make_span(name, unit.piece) for name, unit in program.extra_files.items()]
    driver = _find_missing_driver(parsed, program)
    claim = make_claim(parsed, program.code, devices.named)
    repairs, code = program.repairs, program.code
    if claim.kind is ClaimKind.WRONG_RESULT and claim.shown and len(program.units) > 1:
        code, printed = print_values(program.code)
        details = (f"line {line}" for line in printed)
        repairs = (*repairs, *(Repair(kind="print-value", detail=detail) for detail in details))
    elif claim.kind is ClaimKind.WRONG_RESULT and claim.actual and _tells_value(parsed):
        code = print_last_value(program.code)
        repairs = repairs if code == program.code else (*repairs, Repair(kind="print-value", detail="the last line"))
    if driver and _is_about_parser(parsed, claim) and _compiles_definitions(program, toolchain):
        # The compiler reads a decorated definition when the script is loaded: the failure shows without a driver.
        repairs = (*repairs, Repair(kind=DEFINITIONS_ONLY, detail="the code that uses the definitions"))
        driver = ()
    given = _find_given_files(parsed.pieces, program.missing)
    spans += [make_span(name, piece) for name, piece in given.items()]
    repairs = (*repairs, *(Repair(kind="name-input", detail=name) for name, piece in given.items() if not piece.name))
    missing = tuple(
        one
        for one in (*program.missing, *driver)
        if not (one.kind == "file" and one.name in given) and not _is_reported_as_missing(one, parsed)
    )
    testcase = _make_testcase(replace(program, code=code), toolchain)
    unquoted = claim.kind is ClaimKind.ERROR and claim.signature is None
    if unquoted and not calls_it_an_error(parsed.issue.title) and find_printed_rows(testcase):
        shown = list_shown_values(parsed.document, parsed.pieces)  # the program compares its printed values
        claim = msgspec.structs.replace(claim, kind=ClaimKind.WRONG_RESULT, shown=shown)
    if reads_arguments(code):
        runs = find_arguments(parsed.pieces)
        if runs:
            testcase = msgspec.structs.replace(testcase, steps=tuple((*testcase.steps[0], *words) for words in runs))
            repairs = (*repairs, *(Repair(kind="pass-arguments", detail=" ".join(words)[:400]) for words in runs))
        missing = (*missing, *_find_missing_arguments(code, runs, {*testcase.files, *given}))
    texts = {name: piece.text for name, piece in given.items()}
    return Repro(
        testcase=msgspec.structs.replace(testcase, files={**testcase.files, **texts}),
        claim=claim,
        spans=tuple(spans),
        repairs=repairs,
        missing=add_addresses(missing, parsed.issue.body),
        device=choose_device(toolchain, devices),
        controls=tuple(_make_testcase(control, toolchain) for control in controls),
    )


def _is_reported_as_missing(part: Missing, parsed: ParsedIssue) -> bool:
    """True for a name that the compiler's reader calls undefined, in a quoted failure: ``Undefined variable: x``.

    A `NameError` of Python shows a program that lacks a part.
    """
    if part.kind != "name":
        return False
    name = re.escape(part.name)
    message = re.compile(rf"undefined variable:? ['\"`]?{name}(?!\w)", re.I)
    quoted = (piece.text for piece in parsed.pieces if piece.kind in (Kind.OUTPUT, Kind.TRACEBACK))
    return any(message.search(text[:MAX_QUOTED]) for text in quoted)


MAX_QUOTED = 20_000
"""Characters of one quoted output that are searched for undefined names."""


def _find_missing_arguments(code: str, runs: Sequence[Sequence[str]], files: Collection[str]) -> Iterator[Missing]:
    """Yield the files that the words name, or the words if the script needs some and the report gives none."""
    for name in dict.fromkeys(name for words in runs for name in (*list_files(words), *list_read_words(code, words))):
        if name not in files:
            yield Missing(kind="file", name=name)
    if not runs and needs_arguments(code):
        yield Missing(kind="code", name="the words that the program reads from its command line")


def _find_given_files(pieces: Sequence[Piece], missing: Sequence[Missing]) -> dict[str, Piece]:
    """Return the programs of the report that are the files which the Python reads.

    A program is the file that has its name. The only program without a name is the only such file.
    """
    wanted = [one.name for one in missing if one.kind == "file" and _PROGRAM_FILE.search(one.name)]
    programs = [piece for piece in pieces if piece.kind is Kind.MLIR and piece.cue not in _NO_INPUT]
    given = {name: piece for name in wanted for piece in programs if piece.name == re.split(r"[\\/]", name)[-1]}
    open_names = [name for name in wanted if name not in given]
    unnamed = [piece for piece in programs if not piece.name]
    if len(open_names) == 1 and len(unnamed) == 1:
        given[open_names[0]] = unnamed[0]
    return {name: piece for name, piece in given.items() if "/" not in name and "\\" not in name}


_PROGRAM_FILE = re.compile(r"\.(?:mlir|stablehlo)$")
_NO_INPUT = frozenset({Cue.OUTPUT, Cue.EXPECTED, Cue.QUOTED})


def _tells_value(parsed: ParsedIssue) -> bool:
    """True if only sentences give the value: the report shows neither output nor an error."""
    shown = (Kind.OUTPUT, Kind.TRACEBACK)
    return parsed.signature is None and not any(piece.kind in shown for piece in parsed.pieces)


def print_last_value(code: str) -> str:
    """Return a program that prints the value of its last line, as notebooks do, if it prints and checks nothing."""
    body = _read_silent(code)
    if not body or not _print_value(rows := code.split("\n"), body[-1], "print({})"):
        return code
    return "\n".join(rows)


def print_values(code: str) -> tuple[str, tuple[int, ...]]:
    """Return a program that prints the value of each expression, as cells of notebooks do, and the lines (1-based).

    Nothing is printed if the program prints or checks something itself. A call for its effect alone prints ``None``.
    """
    rows = code.split("\n")
    printed = [node.lineno for node in _read_silent(code) if _print_value(rows, node, "print(repr({}))")]
    return "\n".join(rows), tuple(printed)


def _read_silent(code: str) -> list[ast.stmt]:
    """Return the statements of a program that prints and checks nothing; none for any other text."""
    tree = parse_python(code)
    body = tree.body if tree is not None else []
    nodes = [node for statement in body for node in walk(statement)]
    tells = any(isinstance(node, ast.Assert) or _calls(node, "print") or _calls(node, "assert") for node in nodes)
    return [] if tells else body


def _print_value(rows: list[str], node: ast.stmt, form: str) -> bool:
    """Put an expression statement into ``form``. False for other statements, and if it shares its rows with code."""
    if not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant) or node.end_lineno is None:
        return False
    first, last = node.lineno - 1, node.end_lineno - 1
    # The parser counts columns in bytes.
    end = len(rows[last].encode()[: node.end_col_offset].decode(errors="replace"))
    remark = rows[last][end:].strip()
    if node.col_offset or (remark and not remark.startswith("#")):
        return False
    before, after = form.split("{}")
    rows[last] = f"{rows[last][:end]}{after}{rows[last][end:]}".rstrip()
    rows[first] = f"{before}{rows[first]}"
    return True


def _calls(node: ast.AST, name: str) -> bool:
    """True for a call of a function, or of a method, whose name has a part ``name``: ``print``, ``pprint``."""
    return isinstance(node, ast.Call) and name in ast.unparse(node.func)


def _find_missing_driver(parsed: ParsedIssue, program: Program) -> tuple[Missing, ...]:
    """Report the driver as missing if the program only defines names, unless the definition itself fails."""
    if _only_imports(program) and not _is_about_import(parsed):
        return (Missing(kind="code", name="the code that follows the imports"),)
    called = any(repair.kind == "call-main" for repair in program.repairs)
    defines = any(isinstance(n, ast.ClassDef | ast.FunctionDef) for u in program.units if u.tree for n in u.tree.body)
    if called or not defines or any(unit.acts for unit in program.units):
        return ()
    signature = parsed.signature
    if signature is not None and fails_at_definition(signature):
        return ()
    return (Missing(kind="code", name="the code that uses these definitions"),)


def _only_imports(program: Program) -> bool:
    nodes = [node for unit in program.units if unit.tree is not None for node in unit.tree.body]
    return bool(nodes) and all(isinstance(node, ast.Import | ast.ImportFrom) or is_docstring(node) for node in nodes)


def _is_about_import(parsed: ParsedIssue) -> bool:
    """True if the text states that an import of Python fails: a sentence names the import, or the error quotes it.

    A model may be imported too, by a call.
    """
    packages = "|".join(map(re.escape, sorted(parsed.vocabulary.python.packages)))
    quoted = "\n".join(piece.text for piece in list_failure_pieces(parsed.pieces))
    # The body of the program, and below it the body of a module: the traceback goes through an import.
    bodies = re.findall(r"^ {2}File .{1,400}, in <module>$", quoted, re.M)
    if _IMPORT_FAILS.search(quoted) or _IMPORT_ROW.search(quoted) or len(bodies) > 1:
        return True
    said = _IMPORT_ROW.sub("", f"{parsed.issue.title}\n{parsed.prose}")
    named = rf"\b(?:import|load)(?:s|ing)?\s+(?:of\s+|the\s+)*[`'\"]?(?:{packages})\b" if packages else r"(?!)"
    return bool(_IMPORT_FAILS.search(said) or re.search(named, said, re.I))


_IMPORT_FAILS = re.compile(
    r"ImportError|ModuleNotFound|\bimport (?:error|fail\w*|crash\w*|time)\b"
    r"|\b(?:on|at|during|while|upon|cannot|can(?:no|['’])t|fail(?:s|ed)? to|unable to|when) import(?:ing)?\b",
    re.I,
)
_IMPORT_ROW = re.compile(r"^[ \t>]*(?:from [\w.]+ import \w|import \w)[^\n]*$", re.M)


def _is_about_parser(parsed: ParsedIssue, claim: Claim) -> bool:
    """True if the text states that parsing a definition fails.

    It names the parser, quotes its diagnostic, or states that running the unchanged program crashes or ends with the
    quoted error.
    """
    if claim.kind not in (ClaimKind.CRASH, ClaimKind.ERROR):
        return False
    if (claim.kind is ClaimKind.CRASH or claim.signature is not None) and _RUN_AS_IT_STANDS.search(parsed.prose):
        return True
    quoted = "\n".join(piece.text for piece in list_failure_pieces(parsed.pieces))
    return bool(_PARSER.search(f"{parsed.issue.title}\n{parsed.prose}") or _PARSER_DIAGNOSTIC.search(quoted))


_RUN_AS_IT_STANDS = re.compile(
    r"\b(?:run(?:s|ning)?|exec?ut\w*|excut\w*|load(?:s|ing)?)\b[^.\n]{0,40}\b(?:script|code|snippet|program|file|example)\b",
    re.I,
)
_PARSER = re.compile(r"\bpars(?:e[sdr]?|ing|able)\b", re.I)
_PARSER_DIAGNOSTIC = re.compile(r"^ *--> \S.{0,200}:\d+:\d+", re.M)


def _compiles_definitions(program: Program, toolchain: str) -> bool:
    """True if a decorator of the compiler reads a definition of the program."""
    packages = vocabulary_of(toolchain).python.packages
    trees = [unit.tree for unit in program.units if unit.tree is not None]
    trees += [ast.parse(one.detail) for one in program.repairs if one.kind == "add-import"]
    aliases: set[str] = set()
    for node in (node for tree in trees for node in walk(tree)):
        match node:
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in packages:
                aliases.update(alias.asname or alias.name for alias in node.names)
            case ast.Import():
                names = (alias for alias in node.names if alias.name.partition(".")[0] in packages)
                aliases.update(alias.asname or alias.name.partition(".")[0] for alias in names)
    definitions = (n for tree in trees for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef))
    return any(_find_root(decorator) in aliases for n in definitions for decorator in n.decorator_list)


def _find_root(expression: ast.expr) -> str:
    """Return ``T`` for ``T.prim_func(private=True)``; empty if the expression begins with something else."""
    while isinstance(expression, ast.Attribute | ast.Call):
        expression = expression.value if isinstance(expression, ast.Attribute) else expression.func
    return expression.id if isinstance(expression, ast.Name) else ""


def _make_testcase(program: Program, toolchain: str) -> Testcase:
    others = {name: unit.piece.text for name, unit in program.extra_files.items()}
    return Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain=toolchain,
        files={MAIN_FILE: program.code, **others},
        steps=(("python", MAIN_FILE),),
        requirements=program.requirements,
    )
