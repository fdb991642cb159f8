"""List the system calls that the sandbox refuses: one table, exported as BPF (bubblewrap) and as JSON (containers).

The table lists refusals; every other call is allowed. It contains every call that Docker's default profile refuses to
a process without capabilities. It also contains calls that this profile allows although no compiler needs them
(mounting, tracing, keys, nested namespaces, io_uring, sockets to the hypervisor). An allow-list was rejected: a
further call in a new compiler release would fail and look like a regression.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import tempfile
from dataclasses import dataclass
from typing import Literal

Op = Literal["EQ", "NE", "GT", "MASKED_EQ"]


@dataclass(frozen=True, slots=True)
class Arg:
    """A condition on one argument: ``argument[index] op value``.

    MASKED_EQ means ``argument[index] & value == value``.
    """

    index: int
    op: Op
    value: int


@dataclass(frozen=True, slots=True)
class Rule:
    """Refuse the calls ``names`` with ``error`` if the argument matches ``arg`` (or if ``arg`` is None)."""

    names: tuple[str, ...]
    error: int = errno.EPERM
    arg: Arg | None = None


_NAMESPACE_FLAGS = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h)."""

_AF_NETLINK = 16
_ALLOWED_FAMILIES = (1, 2, 10, _AF_NETLINK)
"""AF_UNIX, AF_INET, AF_INET6, and AF_NETLINK, which name look-ups ask for routes. AF_VSOCK is not allowed, because it
reaches the hypervisor from any network namespace. No compiler needs AF_ALG, AF_PACKET, AF_BLUETOOTH … (kernel
surface)."""

RULES: tuple[Rule, ...] = (
    # Namespaces and mounts: a new user namespace would restore every capability inside it.
    Rule(("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick")),
    Rule(("move_mount", "open_tree", "open_tree_attr", "mount_setattr", "name_to_handle_at", "open_by_handle_at")),
    Rule(("statmount", "listmount", "listns")),
    *(Rule(("clone",), arg=Arg(0, "MASKED_EQ", flag)) for flag in _NAMESPACE_FLAGS),
    # clone3 takes its flags in memory, which a filter cannot read. On ENOSYS, C libraries fall back to clone.
    Rule(("clone3",), errno.ENOSYS),
    # Other processes.
    Rule(("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp")),
    Rule(("prlimit64",), arg=Arg(0, "NE", 0)),
    Rule(("ioprio_set",), arg=Arg(0, "NE", 1)),  # IOPRIO_WHO_PROCESS only, not all processes of the user
    Rule(("ioprio_set",), arg=Arg(1, "NE", 0)),
    # Kernel surface with many past vulnerabilities.
    Rule(("bpf", "perf_event_open", "userfaultfd", "fanotify_init", "lookup_dcookie")),
    Rule(("io_uring_setup", "io_uring_enter", "io_uring_register"), errno.ENOSYS),
    Rule(("keyctl", "add_key", "request_key", "vmsplice")),
    # Placement of memory: it moves other processes' pages, or binds the machine's memory to one node.
    Rule(("migrate_pages", "move_pages", "mbind", "set_mempolicy", "set_mempolicy_home_node", "get_mempolicy")),
    # Other ABIs, and a fixed layout of the address space. Only the query for the current one is allowed.
    Rule(("personality",), arg=Arg(0, "NE", 0xFFFFFFFF)),
    # The machine itself.
    Rule(("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot")),
    Rule(("swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "syslog", "vhangup", "iopl", "ioperm")),
    Rule(("ustat", "sysfs", "_sysctl", "uselib", "nfsservctl", "create_module", "query_module", "get_kernel_syms")),
    Rule(("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname")),
    # Sockets.
    Rule(("socket",), errno.EAFNOSUPPORT, Arg(0, "GT", max(_ALLOWED_FAMILIES))),
    *(
        Rule(("socket",), errno.EAFNOSUPPORT, Arg(0, "EQ", family))
        for family in range(max(_ALLOWED_FAMILIES))
        if family not in _ALLOWED_FAMILIES
    ),
)

NEW_CALLS = {"statmount": 457, "listmount": 458, "open_tree_attr": 467, "listns": 470}
"""Numbers of calls that an older libseccomp does not know. New calls have the same number on every architecture.

A container program with such a library ignores these names. The calls then show the sandbox's own mounts and
namespaces, as ``/proc/self/mountinfo`` does (docs/sandbox-kit.md, known gaps).
"""


def render_profile(*, own_kernel: bool = False) -> str:
    """Return the table as an OCI seccomp profile in JSON, for ``--security-opt seccomp=FILE``.

    ``own_kernel`` is for gVisor, which refuses with EPERM and ignores the profile's error. After EPERM from clone3, a
    C library gives up instead of trying clone, so no thread could start. So clone3 is left to gVisor's own kernel.
    """
    rules = [rule for rule in RULES if not (own_kernel and "clone3" in rule.names)]
    return json.dumps(
        {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [_encode_rule(rule) for rule in rules]}, indent=1
    )


def _encode_rule(rule: Rule) -> dict[str, object]:
    entry: dict[str, object] = {"names": list(rule.names), "action": "SCMP_ACT_ERRNO", "errnoRet": rule.error}
    if rule.arg is not None:
        entry["args"] = [
            {
                "index": rule.arg.index,
                "op": f"SCMP_CMP_{rule.arg.op}",
                "value": rule.arg.value,
                "valueTwo": rule.arg.value if rule.arg.op == "MASKED_EQ" else 0,
            }
        ]
    return entry


@functools.cache
def find_problem() -> str | None:
    """Return None if the BPF program can be built here, else the reason and the remedy."""
    try:
        import pyseccomp  # noqa: F401  (raises RuntimeError when the C library is missing, hence not at the top)
    except (ImportError, RuntimeError, OSError) as error:
        return f"no seccomp filter ({error}): install libseccomp (Debian: libseccomp2)"
    return None


@functools.cache
def compile_program() -> bytes:
    """Return the table as a BPF program for this machine's architecture. Call only if `find_problem` returns None."""
    import pyseccomp

    table = pyseccomp.SyscallFilter(defaction=pyseccomp.ALLOW)
    for rule in RULES:
        for name in rule.names:
            number = _resolve_number(pyseccomp, name)
            if number is not None:
                table.add_rule(pyseccomp.ERRNO(rule.error), number, *_convert_args(pyseccomp, rule))
    with tempfile.TemporaryFile() as file:
        table.export_bpf(file)
        file.seek(0, os.SEEK_SET)
        return file.read()


_UNKNOWN = -1
"""libseccomp's result for an unknown name. Other negative numbers are calls of another architecture."""


def _resolve_number(library: object, name: str) -> int | None:
    """Return the number of a call. None if this architecture, or an older C library, has no call of that name."""
    number: int = library.resolve_syscall(library.Arch.NATIVE, name)  # type: ignore[attr-defined]  # untyped library
    return NEW_CALLS.get(name) if number == _UNKNOWN else number if number >= 0 else None


def list_refused_numbers() -> dict[str, tuple[int, int]]:
    """Return call → number and error, for the calls of this architecture that are refused with any argument."""
    import pyseccomp

    found = ((name, rule.error) for rule in RULES if rule.arg is None for name in rule.names)
    numbers = ((name, _resolve_number(pyseccomp, name), error) for name, error in found)
    return {name: (number, error) for name, number, error in numbers if number is not None}


def _convert_args(library: object, rule: Rule) -> list[object]:
    if rule.arg is None:
        return []
    op = getattr(library, rule.arg.op)
    second = rule.arg.value if rule.arg.op == "MASKED_EQ" else 0
    return [library.Arg(rule.arg.index, op, rule.arg.value, second)]  # type: ignore[attr-defined]  # untyped library
