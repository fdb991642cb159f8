"""Our own failures. What a testcase does is never one of these: it is a value."""

from __future__ import annotations


class ReprobotError(Exception):
    """Base: the message is one sentence that names the value and the next step."""

    exit_code = 3


class UserError(ReprobotError):
    """The caller asked for something that cannot be done: say it, exit 2."""

    exit_code = 2


class InfraError(ReprobotError):
    """A machine, index or engine let us down: worth a retry, exit 75 (EX_TEMPFAIL)."""

    exit_code = 75


class NotReducible(UserError):
    """A testcase that cannot be cut down: the sentence says what is missing."""
