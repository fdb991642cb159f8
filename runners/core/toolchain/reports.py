"""Define the vocabulary of bug reports about one compiler: data and small pure functions.

`bot.extract` joins the vocabularies of all toolchains to read a text whose toolchain is not known yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from runners.core.toolchain.guest import Step
from runners.core.toolchain.products import Product


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAge:
    """The age of a report: the versions that its prose names, and its date."""

    versions: tuple[str, ...] = ()
    day: date = date.min


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceText:
    """The parts of a report that name devices."""

    python: str = ""
    commands: str = ""
    """Command lines or MLIR."""
    title: str = ""
    prose: str = ""
    output: str = ""
    """Output that the report quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDevices:
    """The devices that a report names, and the one that its testcase requests."""

    named: tuple[str, ...] = ()
    chosen: str = ""
    """In the toolchain's words. The usual device if the text names none; ``named`` distinguishes the two cases."""


def name_no_devices(text: DeviceText) -> NamedDevices:
    return NamedDevices()


def choose_no_default(name: str, text: str) -> str | None:
    return None


def choose_no_import(name: str, code: str, age: ReportAge) -> str | None:
    return None


def is_dotted(version: str) -> bool:
    return "." in version


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionWords:
    """The ways in which reports write the versions of a compiler.

    Fields that end in ``patterns`` contain sources of regular expressions without capturing groups.
    """

    prefixes: tuple[str, ...] = ()
    """Words that are joined to a version: ``NAME-`` of ``NAME-1.2.0``."""
    leading: tuple[str, ...] = ()
    """Words that may occur between "works with" and a version."""
    named_by_patterns: tuple[str, ...] = ()
    """Words before a number that make it a version of this compiler."""
    wheel_patterns: tuple[str, ...] = ()
    """Names of distributions before a version."""
    wheel_file_patterns: tuple[str, ...] = ()
    """Names of distributions in the file names of wheels."""
    installed_patterns: tuple[str, ...] = ()
    """Names of distributions in the names of folders in site-packages."""
    line_patterns: tuple[str, ...] = ()
    """Printed lines that name a version."""
    branches: tuple[str, ...] = ()
    """Branches that reports name besides the main branch."""
    short_pattern: str | None = None
    """Numbers of two parts that may be versions in a sentence."""
    is_plausible: Callable[[str], bool] = is_dotted
    """True for a number that can be a version of this compiler."""
    promoted: Mapping[str, str] = field(default_factory=dict)
    """Release candidate → the release with the same content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextProgram:
    """A language of the compiler that reports show without any Python, and the calls that take its text."""

    is_whole: Callable[[str], bool]
    """True for a block of code that contains exactly one whole program of the language."""
    read: str
    """The program that reads ``{text}``; its last line is the call."""
    compile: str
    """The line after it that compiles the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonNames:
    """The names of a compiler's Python API that extraction needs."""

    packages: frozenset[str] = frozenset()
    """Top-level packages of the compiler."""
    products: Mapping[str, str] = field(default_factory=dict)
    """Package → the name of a product with its own compiler, which is derived from this one."""
    drivers: Mapping[str, str] = field(default_factory=dict)
    """Console program → the module that the program runs."""
    text_program: TextProgram | None = None
    """The language of programs without Python. None if there is none."""
    namespaces: tuple[str, ...] = ()
    """Names whose attributes identify a line without a fence as code."""
    imports: Mapping[str, str] = field(default_factory=dict)
    """Name → the import that binds the name by convention. Imports are added in this order."""
    choose_default: Callable[[str, str], str | None] = choose_no_default
    """Name of a target or device that an excerpt leaves out, and title with prose → the usual value as an expression.
    None if the name has no usual value, or if the text may mean another."""
    choose_import: Callable[[str, str, ReportAge], str | None] = choose_no_import
    """Name, code and age of a report → the import that the code needs. None if `imports` decides."""
    distributions: Mapping[str, str] = field(default_factory=dict)
    """Import name → distribution, for packages of the same project that are not in the compiler's own wheels."""
    submodule_requirements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Submodule → distributions that the submodule imports and that the compiler's wheel does not require."""
    call_bounds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Function, by its last name → distribution → the versions that the function supports."""
    readers: frozenset[str] = frozenset()
    """Functions that read a file."""
    writers: frozenset[str] = frozenset()
    """Functions that write a file."""
    definition_pattern: str | None = None
    """The decorators of definitions in the compiler's embedded language."""
    language_names: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Decorator → names that its language defines inside the decorated function. Python never resolves them."""
    omitted_constants: frozenset[str] = frozenset()
    """Names by which a printed module refers to constants that it leaves out."""
    common_words: frozenset[str] = frozenset()
    """Words that are too common in reports to connect a report with a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureWords:
    """The ways in which reports quote the failures of a compiler.

    Fields that end in ``patterns`` contain sources of regular expressions without capturing groups.
    """

    definition_errors: frozenset[str] = frozenset()
    """Exceptions that the compiler raises while it reads a definition."""
    definition_frames: tuple[str, ...] = ()
    """Parts of the names of the functions that read a definition."""
    comparisons: frozenset[str] = frozenset()
    """Functions that testcases call to compare results."""
    comparison_messages: Mapping[str, str] = field(default_factory=dict)
    """Beginning of a message → the comparison that fails with this message."""
    mismatch_patterns: tuple[str, ...] = ()
    """Printed messages about unequal results."""
    unnamed_patterns: tuple[str, ...] = ()
    """Messages that reports quote without the name of the exception."""
    assertions_abort: bool = False
    """True if a failed assertion ends the process by a signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedProgram:
    """A program that compiles and runs in one call. The wheels lack the program."""

    name: str
    split: Callable[[Sequence[str], str], tuple[Step, Step]]
    """Flags and device → a compile call without its input, and a run call without its module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProgram:
    """A program that runs the tests in its input. The wheels lack the program."""

    name: str
    return_checked: Callable[[str], tuple[str, tuple[str, ...]]]
    """An input → the input with tests that return the values they check, and the names of these tests."""
    run_test: Callable[[Sequence[str], str], Step]
    """A call of this program, and the name of a test → the call that runs the rewritten test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducerFormat:
    """The MLIR that a crashing compiler writes for developers: a module, and the passes that crash on it."""

    flag: str
    """The flag that runs the recorded passes."""
    run: Callable[[str, str], Step | None]
    """MLIR and its file name → the call that runs the recorded passes. None for other MLIR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLineTools:
    """The programs of a compiler that reads MLIR and writes modules for a runner.

    Fields that end in ``patterns`` contain sources of regular expressions without capturing groups.
    """

    prefix: str
    """The beginning of the names of all programs."""
    programs: frozenset[str]
    """Programs that may become steps. All others are left out, and a repair states this."""
    other_programs: frozenset[str] = frozenset()
    """Programs of releases that never become steps. Other names with the prefix are in no release."""
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    """Program of another project → the program of this one with the same passes. It replaces the other program if the
    report calls no program of this project."""
    optimizer: str = ""
    """The program that runs single passes."""
    compiler: str
    """The program that compiles a module."""
    compilers: frozenset[str]
    """Programs whose positional argument is MLIR."""
    runners: frozenset[str]
    """Programs that load a module."""
    importers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Program that translates a model, its positional argument → the distributions that it needs."""
    module_flags: tuple[str, ...]
    """Flags that name the module to load, the current flag first."""
    module_suffix: str
    data_suffixes: tuple[str, ...] = ()
    """Suffixes of this compiler's own data files."""
    compile_input: Callable[[str, str, str], Step]
    """Device, input and module → the simplest call of the compiler."""
    output_suffix: Callable[[Sequence[str]], str]
    """A call of the compiler → the suffix of its output file."""
    choose_target: Callable[[Sequence[str], str, str], str | None] = lambda _argv, _text, _device: None
    """A call of the compiler, its input and a device → the flag of a target that the call needs but lacks."""
    complete_target: Callable[[Sequence[str]], tuple[str, ...]] = lambda _argv: ()
    """An incomplete call of the compiler → the flags that its target needs and that the call lacks."""
    knows_flag: Callable[[str, str], bool] = lambda _program, _word: True
    """A program and a flag, possibly with a value → True if some release of the program knows both."""
    list_told_flags: Callable[[DeviceText], tuple[str, ...]] = lambda _text: ()
    """The text of a report without a command → flags of the compiler in its sentences about the failure."""
    choose_chip: Callable[[DeviceText, str], tuple[str, ...]] = lambda _text, _device: ()
    """The text of a report and a device → the flags without which the compiler rejects that device."""
    no_target: str = ""
    """The compiler's message about a missing target. If a report quotes this message, the call is kept unchanged."""
    informs: re.Pattern[str] | None = None
    """Flags with which a program prints facts about itself and reads no input."""
    run_module: Callable[[str, str, str], Step] | None = None
    """Device, module and function → the simplest run of a function without arguments."""
    input_flag: str = "--input"
    """The flag of a run that passes one argument."""
    entry_points: Callable[[str], tuple[tuple[str, bool], ...]] = lambda _text: ()
    """MLIR → its public functions: the name, and True if the function takes arguments."""
    generate_inputs: Callable[[Sequence[str], str], tuple[str, ...] | None] = lambda _argv, _text: ()
    """A run call and its MLIR → the flags that pass generated inputs, if the call needs inputs and passes none. None
    if they cannot be generated."""
    find_called: Callable[[Sequence[str]], str | None] = lambda _argv: None
    """A run call → the function that the call names, if any."""
    choose_extents: Callable[[str, str], str] = lambda text, _told: text
    """MLIR and the text of the report → the MLIR with fixed extents for the dynamic ones, to generate inputs."""
    no_inputs: str = ""
    """The runner's message about missing inputs. If a report quotes this message, the call is kept unchanged."""
    missing_data: Callable[[str], tuple[str, ...]] = lambda _text: ()
    """MLIR → its constants, as written, whose data is not in the text."""
    product: Product | None = None
    """The thing that the compiler makes and that reports count."""
    combined: CombinedProgram | None = None
    reproducers: ReproducerFormat | None = None
    check: CheckProgram | None = None
    result_header_patterns: tuple[str, ...] = ()
    """Lines that a runner prints above its results."""
    result_value_patterns: tuple[str, ...] = ()
    """The beginning of a printed result."""
    compared_values: re.Pattern[str] | None = None
    """The two values of a failed test, as groups ``actual`` and ``expected``."""


def _find_none(_name: str) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWords:
    """Functions from the names that a run prints to paths of the compiler's repository. Empty if no path is known."""

    find_pass: Callable[[str], tuple[str, ...]] = _find_none
    """The name of a pass, or of a phase of the compiler."""
    find_function: Callable[[str], tuple[str, ...]] = _find_none
    """The full name of a C++ function."""
    find_operation: Callable[[str], tuple[str, ...]] = _find_none
    """A message that quotes an operation."""
    find_generator: Callable[[str], tuple[str, ...]] = _find_none
    """A device, to the folders of its code generator."""
    list_files: Callable[[str], tuple[str, ...]] = _find_none
    """An output, to the files of the functions on its stack, the innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitWords:
    """Words that connect reports with commits."""

    name_patterns: tuple[str, ...] = ()
    """Names in code that point to a part of the compiler: a pass, an importer, an operator, a flag."""
    related: Mapping[str, str] = field(default_factory=dict)
    """A word of reports, without separators → words of commits with the same meaning."""
    targets: Mapping[str, str] = field(default_factory=dict)
    """A target, as in `bot.suspects.related` → this compiler's own words for it in labels and paths of commits."""
    sources: SourceWords = SourceWords()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerDefaults:
    """Defaults of the bot's settings for the compiler's own issue tracker."""

    skip_labels: tuple[str, ...] = ()
    """Labels that the tracker's forms put on issues that report no bug."""
    devices: tuple[str, ...] = ()
    """Further devices to run every testcase on."""


PLAIN_VARIABLES = {"OMP_NUM_THREADS": r"\d{1,3}", "PYTHONHASHSEED": r"\d{1,9}", "MALLOC_PERTURB_": r"\d{1,3}"}
"""Variables that any testcase may set, and regular expressions for their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportVocabulary:
    """The facts about one compiler for extraction. A toolchain with an empty vocabulary must be named by hand."""

    called: tuple[str, ...] = ()
    """Names of the compiler in prose, lower case."""
    repositories: re.Pattern[str] | None = None
    """Repositories whose issues are about this compiler."""
    marks: re.Pattern[str] | None = None
    """Words that show that a text is about this compiler. Each occurrence counts."""
    read_devices: Callable[[DeviceText], NamedDevices] = name_no_devices
    versions: VersionWords = VersionWords()
    python: PythonNames = PythonNames()
    failures: FailureWords = FailureWords()
    tools: CommandLineTools | None = None
    """None for a compiler without command-line programs. Then its testcases are Python."""
    mlir_functions: tuple[str, ...] = ()
    """Operations of the compiler's dialects that define a function."""
    mlir_modules: tuple[str, ...] = ()
    """Further operations of the compiler's dialects at the top level of a module."""
    native_marks: tuple[str, ...] = ()
    """Words at the beginning of a line that identify the compiler's own C++ code."""
    source_folders: tuple[str, ...] = ()
    """Folders of the compiler's repository whose scripts are in no wheel: tests, tutorials, applications."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that a testcase may set, and a regular expression for their values. They can change the
    compiler's output and its use of the processor. They open no file and no library."""
    commits: CommitWords = CommitWords()
    tracker: TrackerDefaults | None = None
    """None for a toolchain without a profile in the settings."""


NO_VOCABULARY = ReportVocabulary()
