"""Terminal and interpreter sessions: commands, here-documents and prompts apart from what they print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.extract.blocks.pieces import Kind, Piece, part_of
from bot.extract.blocks.sections import Cue
from bot.extract.command_line.shell import PROMPT, TOOL_PREFIX
from bot.extract.types import Repair
from bot.extract.vocabulary import all_tools, any_of

_PROMPT = re.compile(r"^\s*(>>>|\.\.\.|In \[\d*\]:|\s*\.{3,}:|\$(?= (?:import|from) \w))(?: |$)")

_PYTHON_PROMPT = re.compile(r"^[ \t]*(?:>>> |In \[\d*\]: |\$ (?:import|from) \w)", re.M)


def is_transcript(text: str) -> bool:
    return bool(_PYTHON_PROMPT.search(text))


def read_transcript(piece: Piece) -> list[Piece]:
    """An interactive session → its code (one piece, prompts stripped) and its output."""
    code: list[str] = []
    output: list[str] = []
    session = False
    for row in piece.text.split("\n"):
        found = _PROMPT.match(row)
        if found and (session or not found[1].startswith("...")):
            session = True
            code.append(row[found.end() :])
        else:
            session = session and not row.strip()
            output.append(row)
    body = "\n".join(code).strip("\n") + "\n"
    repair = Repair(kind="strip-prompt", detail="took the code of an interactive session without prompts and output")
    pieces = [replace(piece, kind=Kind.PYTHON, text=body, repairs=(*piece.repairs, repair))]
    said = "\n".join(output).strip("\n")
    if said:
        kind = Kind.TRACEBACK if "Traceback (most recent" in said else Kind.OUTPUT
        pieces.append(replace(piece, kind=kind, text=said + "\n"))
    return pieces


_PROGRAMS = any_of(re.escape(name) for tools in all_tools() for name in sorted(tools.programs | tools.other_programs))
_COMMAND = re.compile(
    rf"^\s{{0,8}}(?:{PROMPT}|> ?|# ?|// ?(?:RUN: ?)?)?(?:time |sudo |gdb --args |[A-Z_]{{2,40}}=\S{{0,200}} )*"
    r"(?:[\w.:~<>{}$\\/-]{0,200}[\\/])?"
    rf"(?:{_PROGRAMS}(?:\.exe)?\b(?![.:])"
    r"|python[23.]*\s+(?:-\w )?[\w./\\:-]+\.py\b"
    r"|python[23.]* -m \w|pytest )"
)
PROMPTED_LINE = re.compile(rf"^\s{{0,8}}{PROMPT}(?<= )")
_PLAIN_SHELL = re.compile(
    rf"^\s*(?:pip3? install|cd |export \w+=|git |cmake |make\b|ninja\b|source |mkdir |wget |{TOOL_PREFIX}[a-z-]+ "
    r"|curl |sudo |apt "
    r"|conda |docker |cat |rm |echo |set -|#!/|for \w+ in [^\n:]{1,200}; ?do )"
)

_BUILD_LOG = re.compile(r"^(?:\[\d+/\d+\] |ninja: |FAILED: |make(?:\[\d+\])?: )", re.M)


def is_command(line: str) -> bool:
    return bool(_COMMAND.match(line[:2000]))


def split_at_commands(piece: Piece) -> Iterator[Piece]:
    """Commands (with their continuation lines and here-documents) apart from the text between them."""
    rows = piece.text.split("\n")[:-1]
    begin = row = 0
    if _BUILD_LOG.search(piece.text):  # its commands are steps of a build, not of the reporter
        yield piece
        return
    while row < len(rows):
        line = rows[row]
        if not (is_command(line) or PROMPTED_LINE.match(line) or _PLAIN_SHELL.match(line)):
            row += 1
            continue
        if row > begin:
            yield part_of(piece, rows, begin, row)
        end = _command_end(rows, row)
        yield part_of(piece, rows, row, end, Kind.SHELL)
        begin = row = end
    if begin < len(rows):
        yield part_of(piece, rows, begin, len(rows))


_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w{1,40})\1")


def _command_end(rows: Sequence[str], row: int) -> int:
    """Behind the last row of the command that begins at ``row``."""
    if found := _HEREDOC.search(rows[row]):
        for end in range(row + 1, len(rows)):
            if rows[end].strip() == found[2]:
                return end + 1
        return len(rows)
    end = row + 1
    comment = rows[row].lstrip().startswith("//")
    while end < len(rows) and (_goes_on(rows[end - 1]) or (not comment and _is_flag_row(rows[end]))):
        end += 1
    return end


def take_heredoc(piece: Piece) -> list[Piece]:
    """A here-document apart from the command that it feeds; the file that it writes gives it its name."""
    rows = piece.text.split("\n")
    found = _HEREDOC.search(rows[0]) if piece.kind is Kind.SHELL else None
    if found is None:
        return [piece]
    end = next((i for i in range(1, len(rows)) if rows[i].strip() == found[2]), len(rows) - 1)
    target = re.search(r">>? *([\w./+-]{1,200})", rows[0])
    name = target[1].rpartition("/")[2] if target else ""
    body = replace(part_of(piece, rows, 1, end, Kind.OUTPUT), name=name or piece.name, cue=Cue.NONE)
    return [part_of(piece, rows, 0, 1), body]


_ARGUMENT = re.compile(
    rf"^\s{{0,8}}(?:{PROMPT})?python[23.]{{0,4}} (?:-\w )?-c +(?P<q>['\"])(?P<code>.{{1,4000}})(?P=q)\s*$", re.S
)


def given_as_argument(piece: Piece) -> Piece | None:
    """The program of ``python -c "…"``."""
    found = _ARGUMENT.match(piece.text[:5000])
    if found is None:
        return None
    code = found["code"].replace('\\"', '"') if found["q"] == '"' else found["code"]
    repair = Repair(kind="take-argument", detail="took the program that is given to python -c")
    return replace(piece, kind=Kind.PYTHON, text=f"{code.strip()}\n", repairs=(*piece.repairs, repair))


_CAT = re.compile(r"[ \t]*\$? ?(?:cat|less|more|bat) +([\w./+-]{1,200})\s*$")


def named_by_cat(parts: Sequence[Piece]) -> Iterator[Piece]:
    """What follows ``$ cat model.mlir`` is that file."""
    name = ""
    for part in parts:
        if part.kind is Kind.SHELL:
            shown = _CAT.match(part.text)
            name = shown[1].rpartition("/")[2] if shown else ""
        elif name:
            part, name = replace(part, name=name, cue=Cue.NONE), ""
        yield part


def _goes_on(line: str) -> bool:
    return line.rstrip().endswith("\\")


def _is_flag_row(line: str) -> bool:
    """A row of flags below a command: the backslash before it was forgotten."""
    return bool(re.match(r"\s*--?[a-z][\w-]*(?:[= ]|$)", line))
