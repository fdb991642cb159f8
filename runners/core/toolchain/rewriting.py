"""The rules by which a compiler's testcases are rewritten for another release or another device.

`runners.rewrite` ports names by the drift table of the toolchain. `Idioms` are the further differences between
releases. Each toolchain retargets its testcases itself.
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
    """True if the code has the meaning of the literal in an older release: another name of the same thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The language of a string literal that is a program."""

    language: Literal["python", "mlir"]
    prelude: str = ""
    """Imports that the reader of the string adds, one a line. They bind the names of a Python program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotationChange:
    """A notation of a text that is replaced by another. ``line`` is 1-based."""

    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoratorSwitch:
    """A keyword of decorators: one release needs ``keyword=True`` for the meaning that another has without it."""

    decorators: frozenset[str]
    """Dotted names in the release that has the meaning without the keyword."""
    keyword: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingForm:
    """An annotated assignment that binds a name to a value, and the annotation that says so since."""

    decorators: frozenset[str]
    """Dotted names of the decorators of the functions in whose bodies such bindings stand."""
    types: re.Pattern[str]
    """Dotted names of the annotations, with ``()`` behind one that is called."""
    code: str
    """The annotation, with ``{home}`` for the namespace of the old one and ``{type}`` for the old one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaringCall:
    """A call whose result was declared by an assignment, and the function that declares it since."""

    decorators: frozenset[str]
    """Dotted names of the decorators of the functions in whose bodies such assignments stand."""
    function: str
    """Dotted name of the function."""
    keyword: str
    """The keyword that such a call has."""
    name: str
    """The other function, in the same namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedArgument:
    """A first argument that a function took from a global, and takes from its caller since."""

    function: str
    """Dotted name of the function."""
    count: int
    """Number of arguments of the old call, all of them positional."""
    makers: frozenset[str]
    """Dotted names of the functions whose result has the argument."""
    attribute: str
    """The attribute of the result that is the argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallForm:
    """A call of a function that is gone, and the expression with the same meaning."""

    function: str
    """Dotted name of the function."""
    parameters: tuple[str, ...]
    """Its parameters. A call with another parameter is not ported."""
    code: str
    """Python code with ``{parameter}`` for the parameters, in the same order: the arguments may have effects. Only a
    literal may change its place or occur twice. ``{home}`` is the namespace as the call writes it."""
    package: str
    """The package that the code uses; empty if it uses ``{home}`` alone."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Code of the parameters that a call may leave out."""
    neutral: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Parameters that the code leaves out, and the code of the values with which that is exact; None for any."""
    still: tuple[int, frozenset[str]] | None = None
    """Number of positional arguments and keywords with which a call means the same today, if the function is still
    there. Such a call stays, unless a list is in the place of the second argument."""
    around: frozenset[str] = frozenset()
    """Functions of which the first argument must be a call; empty for any argument."""
    beside: re.Pattern[str] | None = None
    """A pattern that the program must have somewhere. Other programs have no use for the form."""
    takers: frozenset[str] = frozenset()
    """Functions that may take the result as their first argument, if its text differs from that of the old call.
    Empty if the result is the same. A ``print`` of the result makes the text and prints nothing. Another function may
    print the result. Another use prevents the port."""
    shown: str = ""
    """The code as the list of changes shows it; empty to show ``code``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierForm:
    """A value that no release makes any more, and that the program only hands from its maker to calls.

    The calls are written without the value. They need all that the value is made of among their other arguments:
    otherwise the written call would do less.
    """

    makers: frozenset[str]
    """Dotted names of the functions that make the value. Each takes one argument: parts, or a list of them."""
    part: str
    """The attribute of a variable that is a part of the value."""
    calls: tuple[CallForm, ...]
    """Calls that take the value as their first argument, and the rest of what it is made of as the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idioms:
    """The differences between programs for one release and others, apart from names. The default has none."""

    name_strings: re.Pattern[str] | None = None
    """Calls whose strings are names: keys of a configuration, of a function's attributes. The pattern is searched in
    the dotted name of the called function."""
    plain_constants: frozenset[str] = frozenset()
    """Functions, by last name, that must not wrap a constant as the value of such a key."""
    switched_on: tuple[DecoratorSwitch, ...] = ()
    """Keywords to add, if the decorator has its old name."""
    switched_off: tuple[DecoratorSwitch, ...] = ()
    """Keywords to remove, if porting gives the decorator its old name."""
    bindings: tuple[BindingForm, ...] = ()
    """Annotations to write in another form."""
    declaring: tuple[DeclaringCall, ...] = ()
    """Calls to make to another function, where an assignment declares their result."""
    subscripts: frozenset[str] = frozenset()
    """Dotted names that were written with brackets, ``Buffer[(4,), "int8"]``, and are called since."""
    implied: tuple[ImpliedArgument, ...] = ()
    """Arguments to add, if one variable of the testcase has them."""
    call_forms: tuple[CallForm, ...] = ()
    """Calls to write as other expressions."""
    flat_contexts: frozenset[str] = frozenset()
    """Functions whose result was entered by ``with``. The call is a statement since, and the body follows it."""
    carriers: tuple[CarrierForm, ...] = ()
    """Values that a program only hands to calls, and the calls without them."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Attributes that objects of some types lost, and the code that reads one from any object, ``{value}``. Only the
    release itself tells where that matters, so a port uses them after a run that names the attribute as missing."""
    lost_message: re.Pattern[str] | None = None
    """The message about a missing attribute: the groups of the pattern."""
    proposed_flag: re.Pattern[str] | None = None
    """The message in which a program rejects a flag and proposes another: groups ``old`` and ``new``."""
    spell: Callable[[str, str], str] | None = None
    """Dotted name, whole program → the name to use instead."""
    port_string: Callable[[StringUse, str], Expression | None] | None = None
    """Use and text of a string literal → the expression that replaces the literal; None to keep it."""
    port_variable: Callable[[Argument, str], Expression | None] | None = None
    """Use and name of a variable as an argument → the expression that replaces the variable; None to keep it."""
    find_embedded: Callable[[str], Embedded | None] | None = None
    """Text of a string literal → its language if the text is a program, which is then ported too."""
    flags_program: str = ""
    """The program whose flags Python programs list as strings. A list that begins with a program's name is a call of
    that program."""
    rename_program: Callable[[Sequence[str]], str | None] | None = None
    """A call of a program → the program that does the same in the release, with the same flags; None to keep it."""
    list_needed_flags: Callable[[Sequence[str], Mapping[str, str]], tuple[str, ...]] | None = None
    """A call of a program and the files → flags without which the release cannot read the files, and that
    the call lacks. Other releases do without."""
    find_unread_dialect: Callable[[Mapping[str, str]], str] | None = None
    """The testcase's files → a dialect in them that the release has no reader for; empty if it reads them all."""
    port_pipeline: Callable[[str], str] | None = None
    """The text of a pass pipeline → the same pipeline in the release's syntax."""
    port_mlir: Callable[[str], tuple[str, tuple[NotationChange, ...]]] | None = None
    """MLIR → the same operations in the notations of the release, and each change."""


def _no_idioms(version: str) -> Idioms:
    return Idioms()


def _no_retargeting(testcase: Testcase, device: str) -> Testcase | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """The rewriting rules of a toolchain. By default only names are ported, and testcases are not retargeted."""

    idioms: Callable[[str], Idioms] = _no_idioms
    """Version → its idioms."""
    supply_data: Callable[[Testcase], tuple[Testcase, tuple[str, ...]] | None] = lambda _testcase: None
    """Testcase → the testcase with generated data in place of data that the report leaves out, and the changes in
    words; None if no data is missing, or if the data cannot be generated."""
    retarget: Callable[[Testcase, str], Testcase | None] = _no_retargeting
    """Testcase, device → the testcase for that device, its inputs untouched.

    None for an unknown device, for a testcase that runs on the device as it is, and for a testcase whose target
    cannot be changed.
    """
    targets: tuple[str, ...] = ()
    """Devices for which any machine compiles. A text that names no device may be about any of them."""
    compile_for: Callable[[Testcase, str], Testcase | None] = _no_retargeting
    """Testcase, device → the testcase that compiles for that device; None if it does more than compile, or if its
    target cannot be changed. Its flags are those of some release: a port gives those of another."""
