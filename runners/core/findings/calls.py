"""Define the differences between a call of a testcase and the program or the tool that is called.

The JSON record of a wrong call contains the fields of its difference, and its name (`CallFault`) as ``call_fault``.
"""

from __future__ import annotations

import msgspec

from runners.core.findings.kinds import CallFault

TAG = "call_fault"


class _Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field=TAG):
    """Base class of the differences."""

    @property
    def fault(self) -> CallFault:
        return CallFault(str(self.__struct_config__.tag))


class OtherCount(_Difference, frozen=True, kw_only=True, tag="count"):
    """The call gives another number of arguments than the function takes."""

    function: str
    count: int
    passed: int


class OtherType(_Difference, frozen=True, kw_only=True, tag="type"):
    """An argument has another type than the declared one."""

    function: str
    argument: int
    """1-based."""
    declared: str
    given: str


class OtherSize(_Difference, frozen=True, kw_only=True, tag="values"):
    """An argument lists another number of values than its own type has."""

    function: str | None = None
    argument: int | None = None
    """1-based."""
    given: str
    count: int
    passed: int


class NoFunction(_Difference, frozen=True, kw_only=True, tag="no-function"):
    """The program declares no function of this name."""

    function: str
    functions: tuple[str, ...]
    """The declared ones."""


class PrivateFunction(_Difference, frozen=True, kw_only=True, tag="private"):
    function: str


class OtherTarget(_Difference, frozen=True, kw_only=True, tag="target"):
    """The program is compiled for one target alone, and run on a device of another one."""

    name: str
    device: str


class UnknownFlag(_Difference, frozen=True, kw_only=True, tag="flag"):
    name: str
    program: str
    successor: str | None = None
    """For a flag of older releases: the flag that replaces it, or an empty text. None for a flag of no release."""


class UnknownDevice(_Difference, frozen=True, kw_only=True, tag="device"):
    name: str
    flag: str
    program: str


class RawFile(_Difference, frozen=True, kw_only=True, tag="raw-file"):
    """A flag reads a file with a header as raw numbers, because it states a type."""

    flag: str
    given: str
    name: str
    """The file."""


class DemotedType(_Difference, frozen=True, kw_only=True, tag="demoted"):
    """The compiler replaces a type by default."""

    flag: str
    """The flag that keeps the type."""
    given: str
    taken: str
    values: bool = False
    """True if the testcase computes in this type, and does not only pass it."""


class ReplacedType(_Difference, frozen=True, kw_only=True, tag="type-replaced"):
    """The testcase asks the compiler to replace a type."""

    flag: str
    """The flag that keeps the type."""
    given: str
    taken: str


class LeftOut(_Difference, frozen=True, kw_only=True, tag="option"):
    """A function leaves something out unless an option includes it."""

    function: str
    name: str
    option: str


class OtherParameterType(_Difference, frozen=True, kw_only=True, tag="parameter"):
    """The bytes of an array become a parameter that the program reads as another type."""

    name: str
    taken: str
    function: str


class OldNotation(_Difference, frozen=True, kw_only=True, tag="notation"):
    """A line of a program is in the notation of older releases."""

    file: str
    line: int
    """1-based."""
    successor: str
    """The line in the notation of newer releases."""


CallDifference = (
    OtherCount
    | OtherType
    | OtherSize
    | NoFunction
    | PrivateFunction
    | OtherTarget
    | UnknownFlag
    | UnknownDevice
    | RawFile
    | DemotedType
    | ReplacedType
    | LeftOut
    | OtherParameterType
    | OldNotation
)
