"""The command lines and the MLIR of an issue → a testcase with its claim."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue
from bot.extract.claim.counts import read_row_counts
from bot.extract.command_line.assemble import assemble_commands, assemble_plain_compile
from bot.extract.command_line.dumps import run_dumped_pass
from bot.extract.command_line.find import LocatedCall, fill_placeholders
from bot.extract.command_line.plain_run import add_plain_run, find_told_inputs, implies_run
from bot.extract.command_line.shell import ToolCall
from bot.extract.command_line.steps import print_products, read_printed_program
from bot.extract.command_line.workspace import Workspace, take_last_name
from bot.extract.links import add_addresses, find_linked_names
from bot.extract.parsed_issue import ParsedIssue, choose_device, make_claim, make_span
from bot.extract.types import ADD_RUN, ASSUME_DEVICE, GENERATE_INPUT, Repair, Repro
from runners.core.failure.compare import is_left_out_assertion
from runners.core.failure.oracle import OUTPUT
from runners.core.failure.printed.filters import read_pipe
from runners.core.protocol import Claim, ClaimKind, Signature, Testcase, TestcaseKind
from runners.core.toolchain.facts import AMD, APPLE, NVIDIA
from runners.core.toolchain.reports import CommandLineTools, DeviceText, NamedDevices
from runners.toolchains import find_device, find_toolchain


def extract_commands(
    parsed: ParsedIssue,
    toolchain: str,
    tools: CommandLineTools,
    calls: Sequence[LocatedCall],
    ignored: Sequence[str],
) -> Repro:
    """Return the testcase of ``calls``. Calls or inputs that work according to the report become a control.

    ``ignored`` contains the first words of the commands that were left out.
    """
    failing, working = _split_calls_by_cue(_fill_placeholders(parsed, toolchain, calls))
    inputs, good_inputs = _split_inputs_by_cue(parsed.pieces, failing)
    if good_inputs and not working:
        working = failing
    commands = "\n".join(" ".join(call.argv) for call, _ in failing)
    text = DeviceText(commands=commands, title=parsed.issue.title, prose=parsed.prose)
    devices = parsed.vocabulary.read_devices(text)
    device = choose_device(toolchain, devices)
    output = "\n".join(p.text for p in parsed.pieces if p.kind in (Kind.OUTPUT, Kind.TRACEBACK, Kind.SHELL))
    linked = find_linked_names(parsed.issue.body)
    chip = tools.choose_chip(replace(text, output=output), device)
    workspace = assemble_commands(failing, ignored, inputs, output, device, tools, linked, chip)
    for whole in (_drop_derived(failing, workspace, parsed.pieces), _drop_further(failing, workspace, parsed)):
        if whole and workspace.missing:
            again = assemble_commands(whole, ignored, inputs, output, device, tools, linked, chip)
            workspace = workspace if again.missing else again
    repro = _make_repro(parsed, toolchain, workspace, devices)
    repro = _add_filters(repro, _find_filters(repro, failing), parsed)
    if not working:
        return repro
    control = assemble_commands(working, (), good_inputs or inputs, output, device, tools, linked, chip)
    return replace(repro, controls=() if control.missing else (_make_testcase(toolchain, control),))


def _find_filters(repro: Repro, calls: Sequence[LocatedCall]) -> str:
    """Return the filters behind the last call, if the last step is this call."""
    last, steps = (calls[-1][0] if calls else None), repro.testcase.steps
    same = last is not None and steps and steps[-1][0] == last.argv[0]
    return last.filters if last is not None and same and "|" in last.filters else ""


def _add_filters(repro: Repro, filters: str, parsed: ParsedIssue) -> Repro:
    """Return the testcase with the filters of its last step.

    If they count rows, and the report tells the number, the claim is about this number.
    """
    repro, claim = replace(repro, filters=filters), repro.claim
    pipe = read_pipe(filters)
    if pipe is None:
        return repro
    repro = replace(repro, testcase=msgspec.structs.replace(repro.testcase, filters=filters))
    if not pipe.counts or claim.kind not in (ClaimKind.UNKNOWN, ClaimKind.WRONG_RESULT):
        return repro
    quotes_rows = bool(claim.actual.strip())
    actual, expected = read_row_counts(parsed.document, parsed.pieces, filters, only_below=quotes_rows)
    if not (actual or expected):
        return repro
    signature = Signature(type=OUTPUT, message=actual) if actual else None
    kind = ClaimKind.COUNT
    return replace(
        repro, claim=msgspec.structs.replace(claim, kind=kind, signature=signature, actual=actual, expected=expected)
    )


def _fill_placeholders(parsed: ParsedIssue, toolchain: str, calls: Sequence[LocatedCall]) -> Sequence[LocatedCall]:
    devices = parsed.vocabulary.read_devices(DeviceText(commands="", title=parsed.issue.title, prose=""))

    def find_known(word: str) -> str | None:
        found = find_device(find_toolchain(toolchain), word)
        return None if found is None else found.name

    titled = devices.chosen if devices.named else None
    return fill_placeholders(calls, parsed.issue.body[:MAX_BODY], titled, find_known)


MAX_BODY = 200_000
"""Characters of a report in which devices are looked for."""


def _drop_derived(
    calls: Sequence[LocatedCall], workspace: Workspace, pieces: Sequence[Piece]
) -> Sequence[LocatedCall]:
    """Return the calls without those that read a file which another program of the report writes
    (``sed … > b.mlir``).

    Such a file is derived from the testcase, for comparison.
    """
    typed = "\n".join(piece.text for piece in pieces if piece.kind is Kind.SHELL)
    written = {found[1] for found in _REDIRECTED.finditer(typed)}
    lost = {one.name for one in workspace.missing if one.kind == "file" and one.name in written}
    return _leave_out(calls, lost)


_REDIRECTED = re.compile(r"(?<=[^\n]>)\s{0,4}([^\s>]\S*)")


def _drop_further(calls: Sequence[LocatedCall], workspace: Workspace, parsed: ParsedIssue) -> Sequence[LocatedCall]:
    """Return the calls without those that compile a missing file, if the first call is whole and a failure is quoted.

    A report that quotes its failure below the first call may continue with another program, which it does not show. A
    run whose input is missing is kept: the failure may be that of the run.
    """
    lost = {one.name for one in workspace.missing if one.kind == "file"}
    kept = _leave_out(calls, lost) if parsed.signature is not None else ()
    compiles = all(call.argv[0] in workspace.tools.compilers for call, _ in calls)
    return kept if kept and compiles and kept[0] == calls[0] else ()


def _leave_out(calls: Sequence[LocatedCall], lost: set[str]) -> Sequence[LocatedCall]:
    """Return the calls that need no file of ``lost``, and no file that another call makes of these.

    Empty if nothing would be left out, or no call left.
    """
    kept: list[LocatedCall] = []
    for call, piece in calls if lost else ():
        read, written = _find_read(call), _find_written(call)
        if lost & read:
            lost |= written
        else:
            lost -= written
            kept.append((call, piece))
    return kept if len(kept) < len(calls) else ()


def extract_plain_compile(parsed: ParsedIssue, toolchain: str, tools: CommandLineTools) -> Repro | None:
    """Return a testcase that compiles MLIR given without a command, with the compiler's most ordinary call.

    The only function runs as well if the failure is one of the running program. Return None if such calls cannot show
    the claimed failure, or if the claim is about values of unknown inputs.
    """
    mlir = "\n".join(piece.text for piece in parsed.pieces if piece.kind is Kind.MLIR)
    output = "\n".join(piece.text for piece in parsed.pieces if piece.kind in (Kind.OUTPUT, Kind.TRACEBACK))
    text = DeviceText(commands=mlir, title=parsed.issue.title, prose=parsed.prose, output=output)
    devices = parsed.vocabulary.read_devices(text)
    claim = make_claim(parsed, "", devices.named)
    if claim.kind not in _SHOWN_BY_CALLS:
        return None
    device = choose_device(toolchain, devices)
    flags = _list_told(text, device, tools)
    named = _OPERATION.findall(parsed.issue.title)
    workspace = assemble_plain_compile(parsed.pieces, device, tools, flags, named)
    if workspace is None:
        return None
    if claim.kind is ClaimKind.COUNT:
        return _make_repro(parsed, toolchain, workspace, devices)
    if workspace.produced and not devices.named:
        workspace.add_repair(ASSUME_DEVICE, device)
    about_values = claim.kind is ClaimKind.WRONG_RESULT
    if about_values and devices.named and _needs_a_gpu(toolchain, device):
        return _make_repro(parsed, toolchain, workspace, devices)  # values of another device would be no answer
    if about_values or implies_run(parsed.document, parsed.issue.title, claim, tools):
        ran = add_plain_run(workspace, find_told_inputs(parsed.document, tools))
        if about_values and (not ran or tools.generate_inputs(workspace.steps[-1][1:], mlir) != ()):
            return None
    return _make_repro(parsed, toolchain, workspace, devices)


def extract_dumped_pass(parsed: ParsedIssue, toolchain: str, tools: CommandLineTools) -> Repro | None:
    """Return a testcase that runs the pass which a printed program names, on that program.

    Return None without such a program, or if neither a program after the pass nor a failure shows what the pass does.
    """
    found = run_dumped_pass(parsed.pieces, tools)
    if found is None:
        return None
    pieces, calls = found
    repro = extract_commands(replace(parsed, pieces=tuple(pieces)), toolchain, tools, calls, ())
    shows = repro.claim.kind in (ClaimKind.CRASH, ClaimKind.ERROR) or bool(repro.claim.actual)
    note = Repair(kind=ADD_RUN, detail=" ".join(repro.testcase.steps[-1]))
    return replace(repro, repairs=(*repro.repairs, note)) if shows else None


def _needs_a_gpu(toolchain: str, name: str) -> bool:
    """True for a device that no software can replace."""
    device = find_device(find_toolchain(toolchain), name)
    return device is not None and device.hardware in (NVIDIA, AMD, APPLE)


_OPERATION = re.compile(r"(?<![\w.])[a-z]\w{0,40}(?:\.[a-z_]\w{0,60}){1,4}(?![\w.])")
"""An operation of MLIR with its dialect, such as ``linalg.matmul``."""
_SHOWN_BY_CALLS = frozenset(
    {ClaimKind.CRASH, ClaimKind.ERROR, ClaimKind.HANG, ClaimKind.WRONG_RESULT, ClaimKind.COUNT}
)
"""Claims that the most ordinary calls of the compiler and the runner can show."""


def _list_told(text: DeviceText, device: str, tools: CommandLineTools) -> tuple[str, ...]:
    """Return the flags of the report's sentences, and those that the device needs beside them."""
    told = tools.list_told_flags(text)
    given = {flag.partition("=")[0] for flag in told}
    return (*told, *(flag for flag in tools.choose_chip(text, device) if flag.partition("=")[0] not in given))


def _split_inputs_by_cue(
    pieces: Sequence[Piece], failing: Sequence[LocatedCall]
) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """Return ``pieces`` without the MLIR that works according to the report, and ``pieces`` without the other MLIR.

    MLIR that a call of ``failing`` names belongs to the failure. The second is empty unless the issue has both.
    """
    read = {name for call, _ in failing for name in _find_read(call)}
    works = [p for p in pieces if p.kind is Kind.MLIR and p.cue is Cue.WORKS and p.name not in read]
    others = [p for p in pieces if p.kind is Kind.MLIR and p not in works]
    if not works or not others:
        return pieces, ()
    return [p for p in pieces if p not in works], [p for p in pieces if p not in others]


def _split_calls_by_cue(calls: Sequence[LocatedCall]) -> tuple[Sequence[LocatedCall], Sequence[LocatedCall]]:
    """Return the calls of the failing variant and the calls of the working variant.

    Calls without a cue belong to the failing variant. Calls of tools that the working variant does not call itself
    belong to both variants. A call that writes a file which a later call reads belongs to the variant of the later
    call, whatever the words above it are: "compiling works" is not a control of a run that fails.
    """
    works = [(call, piece) for call, piece in calls if piece is not None and piece.cue is Cue.WORKS]
    fails = [located for located in calls if located not in works]
    tools = {call.argv[0] for call, _ in works}
    if not tools & {call.argv[0] for call, _ in fails}:
        return calls, []
    failing = _add_writers(calls, fails)
    if all(located in failing for located in works):
        return calls, []
    shared = [located for located in calls if located in works or located[0].argv[0] not in tools]
    return failing, _add_writers(calls, shared)


def _add_writers(calls: Sequence[LocatedCall], chosen: Sequence[LocatedCall]) -> Sequence[LocatedCall]:
    """Return ``chosen`` and the calls that write what ``chosen`` reads and does not write itself, in their order."""
    added = list(chosen)
    for at in range(len(calls) - 1, -1, -1):
        call, _ = calls[at]
        if calls[at] in added or not (written := _find_written(call)):
            continue
        others = {name for one, _ in added for name in _find_written(one)}
        read = {name for later in calls[at + 1 :] if later in added for name in _find_read(later[0])}
        if written & read - others:
            added.append(calls[at])
    return [located for located in calls if located in added]


def _find_written(call: ToolCall) -> set[str]:
    """Return the last names of the files that a call writes with ``-o``, ``--output=`` or a redirection."""
    values = [after for flag, after in itertools.pairwise(call.argv) if flag in ("-o", "--o")]
    values += [found[1] for word in call.argv if (found := _OUTPUT_FLAG.match(word))]
    return {take_last_name(value) for value in (*values, call.stdout) if value not in ("", "|", "-")}


def _find_read(call: ToolCall) -> set[str]:
    """Return the last names of the words of a call, and of the values of its flags, that may name files."""
    words = (word for word in call.argv[1:] if not _OUTPUT_FLAG.match(word))
    return {take_last_name(re.split("[=@]", word)[-1]) for word in (*words, call.stdin)} - _find_written(call) - {""}


_OUTPUT_FLAG = re.compile(r"--?o(?:ut|utput)?=(.+)$")


def _make_testcase(toolchain: str, workspace: Workspace) -> Testcase:
    return Testcase(
        kind=TestcaseKind.COMMAND_LINE, toolchain=toolchain, files=workspace.files, steps=tuple(workspace.steps)
    )


def _list_requirements(workspace: Workspace, claim: Claim) -> tuple[str, ...]:
    """Return the packages that the steps need. A report on a missing package gets none: it would lose its failure."""
    if claim.signature is not None and claim.signature.type == "ModuleNotFoundError":
        return ()
    needs = (workspace.tools.importers.get(step[0], ()) for step in workspace.steps)
    return tuple(dict.fromkeys(name for names in needs for name in names))


def _make_repro(parsed: ParsedIssue, toolchain: str, workspace: Workspace, devices: NamedDevices) -> Repro:
    code = "\n".join([*workspace.files.values(), *(" ".join(step) for step in workspace.steps)])
    claim = make_claim(parsed, code, devices.named)
    if claim.kind is ClaimKind.COUNT:
        print_products(workspace)
    signature = claim.signature
    if signature is not None and is_left_out_assertion(signature, find_toolchain(toolchain).FAILURES):
        read_printed_program(workspace)
    _name_functions(workspace)
    if claim.kind is ClaimKind.WRONG_RESULT:
        _ask_for_data(workspace)
        claim = _keep_own_results(claim, workspace)
    told = "\n".join((parsed.prose, *(piece.text for piece in parsed.pieces if piece.kind is not Kind.MLIR)))
    _complete_runs(workspace, claim.kind, told)
    return Repro(
        testcase=msgspec.structs.replace(
            _make_testcase(toolchain, workspace), requirements=_list_requirements(workspace, claim)
        ),
        claim=claim,
        spans=tuple(make_span(name, piece) for name, piece in workspace.sources.items()),
        repairs=tuple(workspace.repairs),
        missing=add_addresses(workspace.missing, parsed.issue.body),
        device=choose_device(toolchain, devices),
    )


def _keep_own_results(claim: Claim, work: Workspace) -> Claim:
    """Leave out the results of runs that are not steps: ``3. the same with another backend`` and its output."""
    runs = sum(step[0] in work.tools.runners for step in work.steps)
    header = "|".join(work.tools.result_header_patterns[:1])
    if not (runs and header and claim.actual) or claim.expected:
        return claim
    starts = [found.start() for found in re.finditer(rf"^(?:{header})", claim.actual, re.M)]
    if len(starts) <= runs or starts[0]:
        return claim
    return msgspec.structs.replace(claim, actual=claim.actual[: starts[runs]].rstrip("\n"))


def _name_functions(work: Workspace) -> None:
    """Let runs call the only public function of the text, if they name one that is not in it.

    The report shows the function's output, so the function existed under another name. Without output, the name may
    be the failure.
    """
    functions = [name for text in work.files.values() for name, _ in work.tools.entry_points(text)]
    if len(functions) != 1:
        return
    for at, step in enumerate(work.steps):
        named = work.tools.find_called(step[1:]) if step[0] in work.tools.runners else None
        headers = (rf"{header}{re.escape(named or '')}\b" for header in work.tools.result_header_patterns[:1])
        if named in (None, functions[0]) or not any(re.search(header, work.output) for header in headers):
            continue
        work.steps[at] = tuple(re.sub(rf"=@?{re.escape(named or '')}$", f"={functions[0]}", word) for word in step)
        work.add_repair("name-function", f"{named} to {functions[0]}, the only function of the text")


_WITHOUT_VALUES = {ClaimKind.CRASH, ClaimKind.ERROR, ClaimKind.HANG, ClaimKind.SLOW, ClaimKind.MEMORY}
"""Claims that mostly do not depend on the values of the inputs."""


def _complete_runs(work: Workspace, claim: ClaimKind, told: str) -> None:
    """Generate the inputs of runs that need some and pass none. For a report about values, ask for the inputs.

    Dynamic extents are those of a matching shape in ``told``, the report's text; else small ones.
    """
    text = "\n".join(work.files.values())
    if work.tools.no_inputs and work.tools.no_inputs in work.output:
        return
    for at, step in enumerate(work.steps):
        flags = work.tools.generate_inputs(step[1:], text) if step[0] in work.tools.runners else ()
        if flags is None and claim in _WITHOUT_VALUES:
            flags = work.tools.generate_inputs(step[1:], work.tools.choose_extents(text, told))
        if claim is ClaimKind.WRONG_RESULT and flags != ():
            work.add_missing_code(f"the inputs of {' '.join(step)}")
        elif claim in _WITHOUT_VALUES and flags:
            work.steps[at] = (*step, *flags)
            work.add_repair(GENERATE_INPUT, " ".join(flags))


def _ask_for_data(work: Workspace) -> None:
    """Record data that the text leaves out as missing, for a testcase whose computed values are in question."""
    if any(step[0] in work.tools.runners for step in work.steps):
        for name in dict.fromkeys(name for text in work.files.values() for name in work.tools.missing_data(text)):
            work.add_missing_code(f"the data of {name}")
