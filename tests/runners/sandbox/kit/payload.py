"""Helpers of the attacks inside the sandbox, imported there as ``kit``. Standard library only.

An attack ends with ``contained()`` after each of its attempts was refused. An attempt that works prints BREACH. So
does an attempt that fails for a reason that would not stop a better attacker.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EROFS, errno.EAFNOSUPPORT)

libc = ctypes.CDLL(None, use_errno=True)

_X86, _ARM = "x86_64", "aarch64"
NUMBERS: dict[str, dict[str, int]] = {
    "ptrace": {_X86: 101, _ARM: 117},
    "add_key": {_X86: 248, _ARM: 217},
    "keyctl": {_X86: 250, _ARM: 219},
    "unshare": {_X86: 272, _ARM: 97},
    "setns": {_X86: 308, _ARM: 268},
    "clone": {_X86: 56, _ARM: 220},
    "mount": {_X86: 165, _ARM: 40},
    "bpf": {_X86: 321, _ARM: 280},
    "perf_event_open": {_X86: 298, _ARM: 241},
    "userfaultfd": {_X86: 323, _ARM: 282},
    "process_vm_readv": {_X86: 310, _ARM: 270},
    "kcmp": {_X86: 312, _ARM: 272},
    "syslog": {_X86: 103, _ARM: 116},
    "kexec_load": {_X86: 246, _ARM: 104},
    "init_module": {_X86: 175, _ARM: 105},
    "finit_module": {_X86: 313, _ARM: 273},
    "reboot": {_X86: 169, _ARM: 142},
    "swapon": {_X86: 167, _ARM: 224},
    "acct": {_X86: 163, _ARM: 89},
    "open_by_handle_at": {_X86: 304, _ARM: 265},
    "fanotify_init": {_X86: 300, _ARM: 262},
    "pivot_root": {_X86: 155, _ARM: 41},
    # The same everywhere since the tables were unified (asm-generic/unistd.h).
    "io_uring_setup": {_X86: 425, _ARM: 425},
    "open_tree": {_X86: 428, _ARM: 428},
    "fsopen": {_X86: 430, _ARM: 430},
    "clone3": {_X86: 435, _ARM: 435},
    "pidfd_getfd": {_X86: 438, _ARM: 438},
    "mount_setattr": {_X86: 442, _ARM: 442},
}


def syscall(name: str, *arguments: Any) -> int:
    """Make the raw system call; raise OSError with the kernel's error."""
    number = NUMBERS[name][platform.machine()]
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result: int = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def refused(what: str, attempt: Callable[[], Any], allowed: tuple[int, ...] = REFUSALS) -> None:
    """Print BREACH unless ``attempt`` raises an OSError with an allowed number."""
    try:
        got = attempt()
    except OSError as error:
        if error.errno in allowed:
            say("refused", what, errno.errorcode[error.errno or 0])
        else:
            say("BREACH", what, "got through to:", error)
    else:
        say("BREACH", what, "worked:", got)


def must(what: str, holds: object, shown: object = "") -> None:
    say("held" if holds else "BREACH", what, shown)


def status() -> dict[str, str]:
    with open("/proc/self/status") as file:
        return dict((part.strip() for part in line.split(":", 1)) for line in file)  # type: ignore[misc]


def contained() -> None:
    say("contained")
    sys.stdout.flush()
