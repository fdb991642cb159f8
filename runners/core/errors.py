"""Exceptions for our own failures. The failure of a testcase is never an exception: it is a value."""

from __future__ import annotations


class ReprobotError(Exception):
    """Base class. The message is one sentence that names the value and the next step."""

    exit_code = 3


class UserError(ReprobotError):
    """The request cannot be done. Exit code 2."""

    exit_code = 2


class InfraError(ReprobotError):
    """A machine, an index or an engine failed; a retry may help. Exit code 75 (EX_TEMPFAIL)."""

    exit_code = 75


class NotReducible(UserError):
    """The testcase cannot be minimized. The message names the missing condition."""
