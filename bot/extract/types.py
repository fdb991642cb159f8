"""The result of extraction: a testcase with the origin of each part, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import PurePosixPath

from runners.core.protocol import Claim, Testcase


class Intent(StrEnum):
    """The purpose of a text."""

    FAILURE = "failure"
    QUESTION = "question"
    FEATURE = "feature"
    """A feature, a change of design, or a removal that is proposed."""
    TRACKING = "tracking"
    """A list of work: an epic, a release plan, a roadmap."""
    DOCUMENTATION = "documentation"
    BUILD = "build"
    """Building the compiler from source, installing it, or its continuous integration."""
    MOVED = "moved"
    """A name that the compiler has renamed or removed on purpose."""
    DISCUSSION = "discussion"
    """A text without code or output, which does not state that something fails."""


DESCRIPTIONS = {
    Intent.FAILURE: "reports a failure",
    Intent.QUESTION: "asks a question",
    Intent.FEATURE: "proposes a change",
    Intent.TRACKING: "tracks work",
    Intent.DOCUMENTATION: "is about the documentation",
    Intent.BUILD: "is about a build or a CI job",
    Intent.MOVED: "is about a name that the compiler has renamed or removed",
    Intent.DISCUSSION: "shows neither code nor output",
}
"""Predicates of the sentence "The text …"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The origin of a file of the testcase. ``lines`` are 1-based and inclusive, in the issue body as written."""

    file: str
    block: int
    """1-based index of the code block in the issue; 0 for text outside any block."""
    lines: tuple[int, int]
    comment: int = 0
    """0 if ``lines`` are in the description; n if they are in the author's n-th comment."""
    attachment: str = ""
    """The linked file that ``lines`` are in (``a.mlir from a.zip``); empty for the issue's own text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One change to the reporter's text, made so that the text can run. Every change is recorded and shown."""

    kind: str
    """``add-import``, ``join-blocks``, ``strip-prompt``, ``strip-patch``, ``add-compile-step``, `DROP_CODE` …"""
    detail: str


DROP_CODE = "drop-code"
"""The kind of a repair that left out text which may be code. A clean run then is not evidence about the reporter's
program: no verdict rests on clean runs of such a testcase."""


DEFINITIONS_ONLY = "definitions-only"
"""The kind of the note that a program only defines names. A clean run of it does not show that their use is clean."""


OPEN_END = "open-end"
"""The kind of the note that the description ends inside the code block of the program. The rest of the program may be
missing: a clean run then is not evidence."""


OPEN_COMMAND = "open-command"
"""The kind of the note that the description ends inside the command. Flags may be missing: then only the reported
failure is evidence."""


WRAP = "wrap-operations"
"""The kind of the repair that puts a function or a module around operations which the report gives alone."""


GENERATE_INPUT = "generate-input"
"""The kind of the repair that passes generated inputs to a function, because the report gives only their types."""


ADD_COMPILE, ADD_RUN = "add-compile-step", "add-run-step"
"""The kinds of the repairs that add a command, because the report gives none."""


READ_AGAIN = "read-again"
"""The kind of the repair that lets the compiler parse its printed program. Releases are built without the reported
assertion, and print what it would have refused."""


PRINT_PRODUCTS = "print-products"
"""The kind of a repair that lets the compiler print the program in which dispatches are counted."""
ASSUME_DEVICE = "assume-device"
"""The kind of the repair that chooses a device for an added command, because the report names no device either."""


ASSUME_VALUE = "assume-value"
"""The kind of the repair that assigns the usual target or device to a name, because the report names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A part of the testcase that the issue does not give."""

    kind: str
    """``file``, ``name``, ``module``, ``code``, `CALL`, `REST`, or of `OUT_OF_REACH`."""
    name: str
    url: str = ""
    """The attachment or gist that offers the part; empty if there is none."""
    why: str = ""
    """Why ``url`` did not give the part: a clause after "it …", in our own words."""


_BINARY = frozenset(
    (
        *(".onnx", ".npy", ".npz", ".pkl", ".pt", ".pth", ".safetensors", ".gguf", ".tflite", ".pb"),
        *(".vmfb", ".mlirbc", ".irpa", ".bin"),
    )
)


def is_binary_name(name: str) -> bool:
    """True for a file whose name shows that its content is not text. No testcase contains such a file."""
    return PurePosixPath(name).suffix.lower() in _BINARY


PRODUCT = "product"
"""Kind of a part that a report cannot give: another product with a compiler of its own."""
SOURCE_SCRIPT = "source-script"
"""Kind of a script of the compiler's repository that the report runs and does not contain."""
ABSENT_PROGRAM = "absent-program"
"""Kind of a program of the compiler's project that fails, and that no release here contains."""
NATIVE_PROGRAM = "native-program"
"""Kind of a program in C or C++ that is linked with the compiler's libraries, and that is not built here."""
OUT_OF_REACH = frozenset({PRODUCT, SOURCE_SCRIPT, ABSENT_PROGRAM, NATIVE_PROGRAM})
"""Kinds of parts that no edit of the report can add for the releases here."""
REST = "rest"
"""The kind of the missing rest of a program or command that breaks off at the end of the description."""


CALL = "call"
"""The kind of the missing call of the compiler, for a text that gives the program to compile and not the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repro:
    """A testcase ready to run. ``missing`` is empty unless the testcase is incomplete."""

    testcase: Testcase
    claim: Claim
    spans: tuple[Span, ...]
    repairs: tuple[Repair, ...] = ()
    missing: tuple[Missing, ...] = ()
    device: str = "cpu"
    """The device that the testcase asks for, by the toolchain's name (``llvm``, ``llvm-cpu``, ``hip`` …)."""
    intent: Intent = Intent.FAILURE
    day: date | None = None
    """The day of the report. It decides which build "main" was, and which releases are younger."""
    controls: tuple[Testcase, ...] = ()
    """Variants that work according to the report. ``testcase`` is the variant that fails."""
    defences: tuple[str, ...] = ()
    """Sentences of the report which state a promise of the tool: "is documented", "should be accepted"."""

    shows_elsewhere: bool = False
    """True if the issue has a picture or links a log, which is not read and may contain the failure."""

    filters: str = ""
    """The filters behind the last command of the report, as shell text: ``| grep x | head -1``. They are shown with
    the command. `Testcase.filters` has those that are applied to the output."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Text left out of the program although it may be code; empty for a whole program."""
        return tuple(repair.detail for repair in self.repairs if repair.kind == DROP_CODE)

    @property
    def assumed(self) -> tuple[str, ...]:
        """The commands, assignments and functions that the report does not give."""
        kinds = (ADD_COMPILE, ADD_RUN, ASSUME_VALUE, WRAP)
        return tuple(repair.detail for repair in self.repairs if repair.kind in kinds)

    @property
    def assumed_device(self) -> str:
        """The device of an added command, or its assignment, if the report names no device; else empty."""
        kinds = (ASSUME_DEVICE, ASSUME_VALUE)
        return next((repair.detail for repair in self.repairs if repair.kind in kinds), "")

    @property
    def generates_inputs(self) -> bool:
        """True if the inputs of the program are generated."""
        return any(repair.kind == GENERATE_INPUT for repair in self.repairs)

    @property
    def has_open_end(self) -> bool:
        """True if the description ends inside the code block of the program."""
        return any(repair.kind == OPEN_END for repair in self.repairs)

    @property
    def has_open_command(self) -> bool:
        """True if the command of the testcase breaks off after a flag, so that flags may be missing."""
        return any(repair.kind == OPEN_COMMAND for repair in self.repairs)

    @property
    def is_wrapped(self) -> bool:
        """True if the function or the module around the operations is not the reporter's."""
        return any(repair.kind == WRAP for repair in self.repairs)

    @property
    def only_defines(self) -> bool:
        """True if the program defines names, and the code that uses them is not in the report."""
        return any(repair.kind == DEFINITIONS_ONLY for repair in self.repairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRepro:
    """No testcase. ``reason`` is one sentence that may be shown to the reporter."""

    reason: str
    claim: Claim
    toolchain: str | None
    missing: tuple[Missing, ...] = ()
    intent: Intent = Intent.FAILURE


Extraction = Repro | NoRepro
