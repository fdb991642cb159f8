"""Exceptions for our own failures. The failure of a testcase is never an exception: it is a value."""

from __future__ import annotations

import errno


class ReprobotError(Exception):
    """Base class. The message is one sentence that names the value and the next step."""

    exit_code = 3


class UserError(ReprobotError):
    """The request cannot be done. Exit code 2."""

    exit_code = 2


class InfraError(ReprobotError):
    """A machine, an index or an engine failed; a retry may help. Exit code 75 (EX_TEMPFAIL)."""

    exit_code = 75


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_SHORT = frozenset({errno.ENOMEM, errno.EAGAIN})
_NO_THREAD = "can't start new thread"
_NO_EXCEPTION = "error return without exception set"
"""Message of CPython when C code fails to allocate memory and sets no `MemoryError`, as in `re` of CPython 3.11."""
_NOT_LOADED = "failed to map segment from shared object"
"""Message of the dynamic loader when memory is short."""


def explain_shortage(error: BaseException) -> InfraError | None:
    """Return the error for a machine without enough memory, processes or disk space. None for other exceptions.

    Any statement can raise it, so only the entry points explain it.
    """
    if isinstance(error, ImportError) and _NOT_LOADED in str(error):
        error = MemoryError()
    match error:
        case SystemError() if _NO_EXCEPTION in str(error):
            return InfraError(
                "the Python interpreter failed in its own code, as it does where memory ends: free some memory, or "
                "raise the limit (`ulimit -v`)"
            )
        case MemoryError():
            return InfraError("this process is out of memory: free some, or raise its limit (`ulimit -v`)")
        case RuntimeError() if _NO_THREAD in str(error):
            return InfraError(
                "no thread can be started: free some memory, or raise the limits (`ulimit -u`, `ulimit -v`)"
            )
        case OSError() if error.errno in _SHORT:
            return InfraError(
                f"the system has no memory or process left ({error.strerror}): free some, or raise the limits "
                "(`ulimit -u`, `ulimit -v`)"
            )
        case OSError() if error.errno in _FULL:
            where = f"{error.filename}" if error.filename else "the disk"
            return InfraError(f"{where} cannot be written ({error.strerror}): free some space")
        case _:
            return None


class NotReducible(UserError):
    """The testcase cannot be minimized. The message names the missing condition."""
