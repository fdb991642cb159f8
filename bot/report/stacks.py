"""Show a native stack as a reader of the compiler does: its top frames, without the machinery around them. Pure."""

from __future__ import annotations

import re

from runners.toolchains import TOOLCHAINS

MAX_FRAMES = 12
_FRAME = re.compile(r"\s{0,4}#(?P<number>\d{1,4})\s+(?:0x[0-9a-f]{4,16}\s+)?(?P<call>\S.*)")
_FILE = re.compile(r"\s*\(/[^()\n]{1,400}\+0x[0-9a-f]+\)\s*$|(?<=\.cpp):0:0|(?<=\.cc):0:0\s*$")
"""The library with an offset, and a position without a line."""
_MACHINERY = re.compile(
    r"^\(|llvm::sys::PrintStackTrace|llvm::sys::RunSignalHandlers|^SignalHandler\b|__pthread_\w+|^clone\b|start_thread"
    r"|ThreadPool|ThreadProxy|UniqueFunctionBase|std::(?:__future|thread|_Function_handler|__once|call_once)"
    r"|__libc_start|^call_init\b|^_start\b|OpToOpPassAdaptor|function_ref<.*callback_fn|PassManager::run"
)
"""Calls of signal handlers, of thread pools, of the start of a program, and of passes by their manager."""
_SHARED = tuple(name for toolchain in TOOLCHAINS.values() for name in toolchain.FAILURES.namespaces)
_NAMESPACES = re.compile("|".join([*map(re.escape, _SHARED), r"\(anonymous namespace\)::"]))


def name_frame(frame: str) -> str:
    """Return the name of a function without the namespaces that all functions of a compiler share."""
    return _NAMESPACES.sub("", frame)


def shorten_stack(text: str) -> str:
    """Return ``text`` with its native frames shortened: no addresses, no machinery, and the top frames alone."""
    lines: list[str] = []
    kept = cut = 0
    for line in text.split("\n"):
        frame = _FRAME.fullmatch(line) if len(line) <= MAX_LINE else None
        if frame is None:
            lines += [_count_cut(cut)] if cut else []
            lines.append(line)
            kept = cut = 0
        elif _MACHINERY.search(frame["call"]):
            continue
        elif kept == MAX_FRAMES:
            cut += 1
        else:
            kept += 1
            call = _NAMESPACES.sub("", _FILE.sub("", frame["call"]))
            lines.append(f"#{frame['number']} {call[:MAX_CALL]}{'…' if len(call) > MAX_CALL else ''}")
    return "\n".join([*lines, _count_cut(cut)] if cut else lines)


MAX_LINE, MAX_CALL = 4_000, 160


def _count_cut(frames: int) -> str:
    return f"… ({frames} more frame{'s' * (frames != 1)})"
