"""Finish a command that the description breaks off in. Pure.

Complete words stay. The last word is removed if it may be incomplete: a release would refuse it, and this refusal is
not evidence. The rest of the reporter's command is not known, so only a failure decides, not a clean run.
"""

from __future__ import annotations

from dataclasses import replace

from bot.extract.command_line.shell import ToolCall
from runners.core.toolchain.reports import CommandLineTools

_OUTPUT_FLAGS = ("-o", "--o")
_INPUT_SUFFIXES = (".mlir", ".mlirbc", ".bc", ".ir", ".txt", ".torch", ".stablehlo", ".vmfb", ".py")


def finish_call(call: ToolCall, text: str, tools: CommandLineTools) -> ToolCall:
    """Return the last call of ``text``, which ends inside an open fence, without an unfinished last word.

    ``cut`` of the result states how the call breaks off. A call that may be complete does not change.
    """
    if call.argv[0] == "python" or call.stdout:
        return call
    continued = text.rstrip().endswith("\\")
    if not continued and _is_unfinished(call, tools):
        *kept, last = call.argv
        if kept[-1] in _OUTPUT_FLAGS:
            kept.pop()
        return replace(call, argv=tuple(kept), cut=f"its last word `{last[:80]}` may be a part of a word")
    if continued:
        return replace(call, cut="the last line has a continuation")
    lacks_input = call.argv[0] in tools.compilers and not call.stdin and not call.names_input
    return replace(call, cut="it names no input") if lacks_input else call


def _is_unfinished(call: ToolCall, tools: CommandLineTools) -> bool:
    *before, last = call.argv
    if not before:
        return False
    if last.startswith("-"):
        return last.endswith(("-", "=", ",")) or last in _OUTPUT_FLAGS or not tools.knows_flag(call.argv[0], last)
    if before[-1].startswith("-") and before[-1] not in _OUTPUT_FLAGS and "=" not in before[-1] and "." not in last:
        return False  # the value of a flag
    return not last.endswith(_INPUT_SUFFIXES) and last.isascii() and last[-1] not in ">}%"
