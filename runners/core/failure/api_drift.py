"""Recognize failures that only come from a changed API: failure text × testcase × toolchain → `Drift`. Pure.

A testcase is incompatible with a build that lacks one of its names. Such a run is not evidence about the reported
failure. The name must occur in the testcase: the same message about a name that only the compiler uses is a fault of
the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from runners.core.failure.oracle import Drift
from runners.core.findings.kinds import Moved
from runners.core.protocol import Signature, Testcase
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.facts import DriftEntry
from runners.core.toolchain.failures import FailureVocabulary, Retired

NAME_MESSAGES = {
    "ModuleNotFoundError": r"No module named '(?P<name>[\w.]{1,200})'",
    "ImportError": r"cannot import name '(?P<name>\w{1,200})' from '(?P<owner>[\w.]{1,200})'",
    "AttributeError": (
        r"(?:type object |module )?'(?P<owner>[\w.]{1,200})' (?:object )?has no attribute '(?P<name>\w{1,200})'"
    ),
    "TypeError": r"(?P<owner>[\w.<>]{1,200})\(\) got an unexpected keyword argument '(?P<name>\w{1,200})'",
}
"""Python's messages about a missing name, by exception."""
MAX_CAUGHT = 200
_MISSING_NAME = tuple(
    # A tool may print the message of an AttributeError as its own error.
    re.compile(rf"(?:{'AttributeError|error' if name == 'AttributeError' else name}): {message}")
    for name, message in NAME_MESSAGES.items()
)
_MISSING_FLAG = (
    re.compile(r"Unknown command line argument '-{0,2}(?P<name>[\w-]{1,200})"),
    re.compile(r"for the --?(?P<name>[\w-]{1,200}) option: Cannot find option named"),
    re.compile(r"unknown custom value for --?[\w-]{1,200}='(?P<name>[\w-]{1,200})'"),
)
"""Messages of LLVM's command line."""
_UNKNOWN_SYNTAX = (
    re.compile(r"error: custom op '(?P<name>[\w.]{1,200})' is unknown"),
    re.compile(r"error: Dialect `(?P<name>[\w.]{1,200})' not found for custom op"),
    re.compile(r"error: unregistered operation '(?P<name>[\w.]{1,200})'"),
    re.compile(r"error: unknown \w{1,30} type `(?P<name>[\w.]{1,200})`? in dialect"),
    re.compile(r"error: unknown (?:type|attribute) `?(?P<name>[\w.]{1,200})`?"),
)
"""Diagnostics of MLIR's parser."""


def find_drift(
    text: str, testcase: Testcase, toolchain: Toolchain, version: str, *, caught: bool = False
) -> Drift | None:
    """Return the moved name that explains a failure. None if the testcase contains no missing name.

    ``text`` is the output of the failing step. Its last 60,000 characters are searched. If the testcase prints
    exceptions that it ``caught``, the names of their classes may be absent.
    """
    text = text[-60_000:]
    if caught:
        bare = (f"{name}: {found[0]}" for name, one in NAME_MESSAGES.items() for found in re.finditer(one, text))
        text = "\n".join((text, *islice(bare, MAX_CAUGHT)))
    for name, owner in _list_missing_names(text, toolchain.FAILURES):
        if _is_used(name, testcase):
            entry = _find_entry(name, owner, toolchain.DRIFT, version)
            shown = f"{owner}.{name}" if owner and not name.startswith(owner) else name
            # An entry for a later release does not explain a name that is missing for another reason.
            return (
                _describe_entry(entry, version)
                if entry is not None and (entry.listed or _is_missing_in(version, entry))
                else Drift(name=shown, successor=None, why=f"no {shown} in {version}", version=version)
            )
    if (unplaced := _find_unplaced(text, testcase, toolchain.FAILURES, version)) is not None:
        return unplaced
    drifts = (_find_retired(text, testcase, notation) for notation in toolchain.FAILURES.retired)
    return next((drift for drift in drifts if drift is not None), None)


def find_missing_name(signature: Signature, testcase: Testcase, vocabulary: FailureVocabulary) -> str | None:
    """Return the operation or flag in the testcase that a tool does not know. Python names do not count."""
    text = f"error: {signature.message}"
    patterns = (*vocabulary.missing_names, *_MISSING_FLAG, *_UNKNOWN_SYNTAX)
    names = (found["name"] for pattern in patterns for found in pattern.finditer(text))
    return next((name for name in names if _is_used(name, testcase)), None)


def find_needed_flag(testcase: Testcase, toolchain: Toolchain, version: str) -> Drift | None:
    """Return the obstacle that keeps a build from reading the input: an unknown dialect, or a flag that a call lacks.
    None if the build reads the input."""
    idioms = toolchain.REWRITING.idioms(version)
    unread = idioms.find_unread_dialect(testcase.files) if idioms.find_unread_dialect is not None else ""
    if unread:
        why = f"{version} has no reader for {unread}"
        return Drift(name=unread, successor=None, why=why, moved=Moved.ABSENT, version=version)
    list_needed = idioms.list_needed_flags
    if list_needed is None:
        return None
    lacking = (flag for step in testcase.steps for flag in list_needed(step, testcase.files))
    flag = next(lacking, None)
    if flag is None:
        return None
    why = f"{version} reads this input only with {flag}"
    return Drift(name=flag, successor=None, why=why, moved=Moved.NEEDED, version=version)


def find_moved_name(message: str, table: Sequence[DriftEntry]) -> DriftEntry | None:
    """Return the reviewed entry of the Python name that a message reports as missing. None without such an entry."""
    for pattern in _MISSING_NAME[:3]:
        if (found := pattern.search(message)) is not None:
            owner = found.groupdict().get("owner") or ""
            full = f"{owner}.{found['name']}" if owner else found["name"]
            # The owner of a missing attribute exists, so an entry for the owner itself explains nothing.
            entries = (entry for entry in table if not (owner and entry.covers(owner)))
            return next((entry for entry in entries if not entry.listed and entry.covers(full)), None)
    return None


def _find_retired(text: str, testcase: Testcase, retired: Retired) -> Drift | None:
    found = retired.message.search(text[-60_000:])
    if found is None or not any(found["text"] in file for file in testcase.files.values()):
        return None
    successor = retired.successor(found["text"])
    why = f'{retired.notation} ("{found["text"]}") are no longer accepted; they are replaced by {successor}'
    return Drift(name=found["text"], successor=successor, why=why)


def _find_unplaced(text: str, testcase: Testcase, vocabulary: FailureVocabulary, version: str) -> Drift | None:
    """Return the pass of a command that the build does not run where the command has it."""
    flags = [flag for step in testcase.steps for word in step for flag in re.findall(r"[\w-]+", word)]
    for found in (one for pattern in vocabulary.unplaced_passes for one in pattern.finditer(text)):
        name = found["name"].removesuffix("Pass")
        if any(names_pass(flag, name) for flag in flags):
            why = f"{version} does not run the pass {name} on {found['on']}"
            return Drift(name=name, successor=None, why=why, moved=Moved.ELSEWHERE, version=version)
    return None


def names_pass(flag: str, name: str) -> bool:
    """True if the last words of a flag are the name of a pass's class: ``codegen-drop-units`` of ``DropUnits``."""
    words = flag.lower().split("-")
    return bool(name) and any("".join(words[at:]) == name.lower() for at in range(len(words)))


def _describe_entry(entry: DriftEntry, version: str) -> Drift:
    name = f"{entry.of}({entry.old}=…)" if entry.listed and entry.of else entry.old
    # A list contains the first build that lacks the name. An unavailable earlier release may already lack it.
    if not entry.affects(version):
        moved, since = Moved.ABSENT, version
    else:
        compared = entry.listed or entry.kind == "registered"
        moved, since = Moved.MISSING_SINCE if compared else Moved.REMOVED, str(entry.gone_in)
    state = f"{name} {_STATES[moved]} {since}"
    if entry.is_too_new(version) and entry.new == entry.old:
        added = str(entry.introduced_in)
        why = f"{state}; {added} has it"
        return Drift(name=name, successor=None, why=why, moved=moved, version=since, added_in=added)
    replacement = f"; {entry.new} replaces it" if entry.new and moved is not Moved.ABSENT else ""
    return Drift(name=name, successor=entry.new, why=f"{state}{replacement}", moved=moved, version=since)


_STATES = {
    Moved.REMOVED: "was removed in",
    Moved.MISSING_SINCE: "is missing from every available build since",
    Moved.ABSENT: "does not exist in",
}


def _list_missing_names(text: str, vocabulary: FailureVocabulary) -> Iterable[tuple[str, str]]:
    """Yield (name, owner) for each name that the output reports as missing. Flags and operations have no owner."""
    for pattern in (*_MISSING_NAME, *vocabulary.missing_names, *_MISSING_FLAG, *_UNKNOWN_SYNTAX):
        for found in pattern.finditer(text):
            yield found["name"], (found.groupdict().get("owner") or "")


def _is_used(name: str, testcase: Testcase) -> bool:
    last = name.rpartition(".")[2]
    word = re.compile(rf"(?<!\w)(?<!\w-){re.escape(last)}(?![\w-])")
    return any(word.search(text) for text in testcase.files.values()) or any(
        word.search(argument) for step in testcase.steps for argument in step
    )


def _find_entry(name: str, owner: str, table: Sequence[DriftEntry], version: str) -> DriftEntry | None:
    """Return the table's entry for a name: the longest that matches ``owner.name``, else one that matches ``name``.

    A listed entry is the last choice. It must have exactly this name, and the build must lack the name.
    """
    full = f"{owner}.{name}" if owner else name
    fitting = [e for e in table if not e.listed and (_is_same_name(e.old, full) or _is_same_name(e.old, name))]
    best = max(fitting, key=lambda e: (_is_same_name(e.old, full), len(e.old)), default=None)
    if best is not None and _is_same_name(best.old, full):
        return best
    return next(
        (e for e in table if e.listed and _is_exact_entry(e, name, owner) and _is_missing_in(version, e)), best
    )


def _is_exact_entry(entry: DriftEntry, name: str, owner: str) -> bool:
    """True if the entry is for exactly this name.

    For a keyword, Python's message contains only the last name of the function, or the class of a constructor.
    """
    if entry.kind != "keyword":
        return entry.old == f"{owner}.{name}"
    function = owner.removesuffix(".__init__").rpartition(".")[2]
    return entry.old == name and bool(function) and entry.of.endswith(f".{function}")


def _is_missing_in(version: str, entry: DriftEntry) -> bool:
    return entry.affects(version) or entry.is_too_new(version)


def _is_same_name(old: str, name: str) -> bool:
    bare = old.lstrip("-").rstrip("=")
    return (
        bare == name
        or bare.endswith(f".{name}")
        or bare.endswith(f"={name}")
        or name.startswith(f"{bare}.")
        or bare.split("=")[0] == name
    )
