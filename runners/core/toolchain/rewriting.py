"""The rules by which a compiler's testcases are rewritten for another release or another device.

`runners.rewrite` ports names by the drift table of the toolchain. `Idioms` are the further differences between
releases. Each toolchain retargets its own testcases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from runners.core.protocol import Testcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A string literal or a variable as the argument of a call."""

    function: str
    """Dotted name of the called function, in the testcase's own names."""
    keyword: str
    """Empty for a positional argument."""
    position: int
    """0-based, among all arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A string literal as the value of an assignment."""

    names: tuple[str, ...]


StringUse = Argument | Assigned


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Python code. ``package`` is the package that the code uses, if any."""

    code: str
    package: str = ""
    notation: bool = False
    """True if the code has the meaning of the literal in an older release: another name for the same thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The language of a string literal that is a program."""

    language: Literal["python", "mlir"]
    prelude: str = ""
    """Imports that the reader of the string adds, one per line. They bind the names of a Python program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotationChange:
    """A notation that is replaced by another. ``line`` is 1-based."""

    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoratorSwitch:
    """A keyword of decorators. One release needs ``keyword=True`` for a meaning that another has by default."""

    decorators: frozenset[str]
    """Dotted names in the release where this meaning is the default."""
    keyword: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingForm:
    """An annotated assignment that binds a name to a value, and the annotation that newer releases need."""

    decorators: frozenset[str]
    """Dotted names of the decorators of the functions that contain such bindings."""
    types: re.Pattern[str]
    """Dotted names of the annotations, followed by ``()`` if called."""
    code: str
    """The new annotation. ``{home}`` is the namespace of the old one, ``{type}`` is the old one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaringCall:
    """A call whose result was declared by an assignment, and the function that declares it in newer releases."""

    decorators: frozenset[str]
    """Dotted names of the decorators of the functions that contain such assignments."""
    function: str
    """Dotted name of the function."""
    keyword: str
    """The keyword that identifies such a call."""
    name: str
    """The other function, in the same namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedArgument:
    """A first argument that an older release took from a global, and that a newer one takes from the caller."""

    function: str
    """Dotted name of the function."""
    count: int
    """Number of arguments of the old call. All are positional."""
    makers: frozenset[str]
    """Dotted names of the functions whose result contains the argument."""
    attribute: str
    """The attribute of the result that is the argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallForm:
    """A call of a removed function, and an expression with the same meaning."""

    function: str
    """Dotted name of the function."""
    parameters: tuple[str, ...]
    """Its parameters. A call with any other parameter is not ported."""
    code: str
    """Python code with ``{parameter}`` for the parameters, in the same order, because the arguments may have effects.
    Only a literal may move or occur twice. ``{home}`` is the namespace as the call writes it."""
    package: str
    """The package that the code uses. Empty if it uses only ``{home}``."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Code for the parameters that a call may omit."""
    neutral: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Parameters that the code omits, and the code of the values for which that is exact. None for any value."""
    still: tuple[int, frozenset[str]] | None = None
    """Number of positional arguments, and keywords, with which a call still has the same meaning if the function
    exists. Such a call is kept, unless its second argument is a list."""
    around: frozenset[str] = frozenset()
    """Functions whose first argument must be a call. Empty for any argument."""
    beside: re.Pattern[str] | None = None
    """A pattern that the program must contain. Other programs do not need the form."""
    takers: frozenset[str] = frozenset()
    """Functions that may take the result as their first argument, if its text differs from that of the old call.
    Empty if the result is the same. A ``print`` of the result makes the text and prints nothing. Another function may
    print the result. Any other use prevents the port."""
    shown: str = ""
    """The code in the list of changes. Empty to show ``code``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierForm:
    """A value that no release makes any more, and that the program only passes from its maker to calls.

    The ported calls omit the value. Their other arguments must contain all parts of the value. Otherwise the ported
    call would do less.
    """

    makers: frozenset[str]
    """Dotted names of the functions that make the value. Each takes one argument: one part, or a list of parts."""
    part: str
    """The attribute of a variable that is a part of the value."""
    calls: tuple[CallForm, ...]
    """Calls that take the value as their first argument, and its other parts as the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idioms:
    """The differences between programs for one release and others, apart from names. By default there are none."""

    name_strings: re.Pattern[str] | None = None
    """Calls whose strings are names: keys of a configuration or of a function's attributes. The pattern is searched
    in the dotted name of the called function."""
    plain_constants: frozenset[str] = frozenset()
    """Functions, by last name, that must not wrap a constant as the value of such a key."""
    switched_on: tuple[DecoratorSwitch, ...] = ()
    """Keywords to add, if the decorator has its old name."""
    switched_off: tuple[DecoratorSwitch, ...] = ()
    """Keywords to remove, if porting gives the decorator its old name."""
    bindings: tuple[BindingForm, ...] = ()
    """Annotations to rewrite."""
    declaring: tuple[DeclaringCall, ...] = ()
    """Calls to redirect to another function, if an assignment declares their result."""
    subscripts: frozenset[str] = frozenset()
    """Dotted names that older releases write with brackets, ``Buffer[(4,), "int8"]``, and newer ones call."""
    implied: tuple[ImpliedArgument, ...] = ()
    """Arguments to add, if exactly one variable of the testcase contains them."""
    call_forms: tuple[CallForm, ...] = ()
    """Calls to rewrite as other expressions."""
    flat_contexts: frozenset[str] = frozenset()
    """Functions whose result older releases enter by ``with``. Newer ones make the call before the body."""
    carriers: tuple[CarrierForm, ...] = ()
    """Values that a program only passes to calls, and the calls without them."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Attributes that objects of some types lost, and the code that reads one from any object, ``{value}``. Only a
    run of the release shows where that matters. So a port uses them only after a run that reports the attribute as
    missing."""
    lost_message: re.Pattern[str] | None = None
    """The message about a missing attribute: the groups of the pattern."""
    proposed_flag: re.Pattern[str] | None = None
    """The message in which a program rejects a flag and proposes another: groups ``old`` and ``new``."""
    spell: Callable[[str, str], str] | None = None
    """Dotted name, whole program → the name to use instead."""
    port_string: Callable[[StringUse, str], Expression | None] | None = None
    """Use and text of a string literal → the expression that replaces the literal. None to keep it."""
    port_variable: Callable[[Argument, str], Expression | None] | None = None
    """Use and name of a variable as an argument → the expression that replaces the variable. None to keep it."""
    find_embedded: Callable[[str], Embedded | None] | None = None
    """Text of a string literal → its language if the text is a program. Then the program is ported too."""
    flags_program: str = ""
    """The program whose flags Python programs list as strings. A list that begins with the name of a program is a
    call of that program."""
    rename_program: Callable[[Sequence[str]], str | None] | None = None
    """A call of a program → the program with the same function and flags in the release. None to keep it."""
    list_needed_flags: Callable[[Sequence[str], Mapping[str, str]], tuple[str, ...]] | None = None
    """A call of a program, and the files → flags that the release needs to read the files and that the call lacks.
    Other releases do not need them."""
    find_unread_dialect: Callable[[Mapping[str, str]], str] | None = None
    """The testcase's files → a dialect in them that the release cannot read. Empty if it reads them all."""
    port_pipeline: Callable[[str], str] | None = None
    """The text of a pass pipeline → the same pipeline in the release's syntax."""
    place_passes: Callable[[Sequence[str], Mapping[str, str], str], tuple[str, ...] | None] | None = None
    """Step, files and the messages of the release → the call with its passes where the release runs them."""
    port_mlir: Callable[[str], tuple[str, tuple[NotationChange, ...]]] | None = None
    """MLIR → the same operations in the release's notation, and each change."""


def _no_idioms(version: str) -> Idioms:
    return Idioms()


def _no_retargeting(testcase: Testcase, device: str) -> Testcase | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """The rewriting rules of a toolchain. By default, only names are ported, and testcases are not retargeted."""

    idioms: Callable[[str], Idioms] = _no_idioms
    """Version → its idioms."""
    supply_data: Callable[[Testcase], tuple[Testcase, tuple[str, ...]] | None] = lambda _testcase: None
    """Testcase → the testcase with generated data for the data that the report leaves out, and the changes in words.
    None if no data is missing, or if the data cannot be generated."""
    retarget: Callable[[Testcase, str], Testcase | None] = _no_retargeting
    """Testcase, device → the testcase for that device, with the same inputs.

    None for an unknown device, for a testcase that runs on the device unchanged, and for a fixed target.
    """
    targets: tuple[str, ...] = ()
    """Devices for which every machine can compile. A text that names no device may be about any of them."""
    compile_for: Callable[[Testcase, str], Testcase | None] = _no_retargeting
    """Testcase, device → the testcase that compiles for that device. None if it does more than compile, or if its
    target cannot be changed. Its flags may be those of any release; a port adapts them."""
