"""Split terminal and interpreter sessions into commands, here-documents and prompts, and their output."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from bot.extract.blocks.pieces import Kind, Piece, cut_rows
from bot.extract.blocks.sections import Cue, IssueSection
from bot.extract.command_line.shell import (
    PROMPT,
    PROMPTED_LINE,
    TOOL_PREFIX,
    breaks_in_path,
    is_command,
    names_package,
)
from bot.extract.types import Repair

_PROMPT = re.compile(r"^\s*(>>>|\.\.\.|In \[\d*\]:|\s*\.{3,}:|\$(?= (?:import|from) \w))(?: |$)")
_PYTHON_PROMPT = re.compile(r"^[ \t]*(?:>>> |In \[\d*\]: |\$ (?:import|from) \w)", re.M)


def is_interpreter_session(text: str) -> bool:
    return any(not _LINKER_ROW.match(text, found.start()) for found in _PYTHON_PROMPT.finditer(text))


_LINKER_ROW = re.compile(r"\s*>>> {1,40}(?:referenced (?:by|\d)|defined (?:at|in)|see |did you mean|/)")
"""``lld`` begins the rows below an error with ``>>>`` too."""


def split_interpreter_session(piece: Piece) -> list[Piece]:
    """Return the code of an interactive session as one piece without prompts, and its output as another.

    The interpreter shows the value of each expression. The code does so too where the session has output below.
    """
    code: list[str] = []
    output: list[str] = []
    answered: set[int] = set()  # rows of the code with output below
    session = False
    for row in piece.text.split("\n"):
        found = _PROMPT.match(row)
        if found and (session or not found[1].startswith("...")):
            session = True
            code.append(row[found.end() :])
        else:
            if session and row.strip():
                answered.add(len(code))
            session = session and not row.strip()
            output.append(row)
    repair = Repair(kind=SESSION, detail="took the code of an interactive session without prompts and output")
    echoed = _echo_values(code, answered)
    shown = Repair(kind=ECHO, detail="show the values of expressions, as the interpreter does")
    repairs = (*piece.repairs, repair, *([shown] if echoed != code else []))
    body = "\n".join(echoed).strip("\n") + "\n"
    pieces = [replace(piece, kind=Kind.PYTHON, text=body, repairs=repairs)]
    if printed := "\n".join(output).strip("\n"):
        kind = Kind.TRACEBACK if "Traceback (most recent" in printed else Kind.OUTPUT
        wished = piece.cue is Cue.EXPECTED and piece.section is not IssueSection.EXPECTED
        cue = (
            Cue.NONE if wished else piece.cue
        )  # the words above may give the right value: a session shows the real one
        pieces.append(replace(piece, kind=kind, text=printed + "\n", cue=cue))
    return pieces


def _echo_values(code: Sequence[str], answered: Collection[int]) -> list[str]:
    """Return the rows of a session's code. An expression that ends above output shows its value."""
    rows = list(code)
    try:
        tree = ast.parse("\n".join(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return rows
    for statement in reversed(tree.body):
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
                continue
            case ast.Expr(value=value) if statement.end_lineno in answered and statement.lineno == value.lineno:
                first, last = statement.lineno - 1, (statement.end_lineno or 1) - 1
                if rows[first].isascii() and rows[last].isascii():  # the parser counts columns in bytes
                    begin, end = statement.col_offset, statement.end_col_offset
                    rows[last] = f"{rows[last][:end]}){rows[last][end:]}"
                    rows[first] = f'{rows[first][:begin]}__import__("sys").displayhook({rows[first][begin:]}'
            case _:
                pass
    return rows


ECHO = "echo-value"
SESSION = "strip-prompt"
"""The repairs of a session of the interpreter."""


_PLAIN_SHELL = re.compile(
    rf"^\s*(?:pip3? install|cd |export \w+=|git |cmake |make\b|ninja\b|source |mkdir |wget |{TOOL_PREFIX}[a-z-]+ "
    r"|curl |sudo |apt |conda |docker |cat |rm |echo |set -|#!/"
    r"|for \w+ in [^\n:;]{1,200}; ?(?:do\b|[^\n]{1,4000}; ?end\s*$))"
)
_LOOP_HEAD = re.compile(r"\s{0,8}(?:\$ )?for \w{1,40} in [^\n:;]{1,400}(?P<do>; ?do\s*$)?")
_ASSIGNMENT = re.compile(
    rf"\s{{0,8}}(?:{PROMPT})?(?:export )?(?P<name>[A-Za-z_]\w{{0,40}})="
    r"(?:\"(?P<double>[^\"$`\n]{0,2000})\"|'(?P<single>[^'\n]{0,2000})'|(?P<bare>[^\s\"'$`()]{1,2000}))\s*$"
)
_BUILD_LOG = re.compile(r"^(?:\[\d+/\d+\] |ninja: |FAILED: |make(?:\[\d+\])?: )", re.M)


def split_at_commands(piece: Piece) -> Iterator[Piece]:
    """Yield each command with its continuation lines and here-document, and each text between commands."""
    rows = _expand_variables(_strip_second_prompts(piece.text.split("\n")[:-1]))
    begin = row = 0
    if _BUILD_LOG.search(piece.text):  # the commands are steps of a build, not of the reporter
        yield piece
        return
    while row < len(rows):
        if not _is_typed(rows, row) or _is_echoed(rows, row):
            row += 1
            continue
        if row > begin:
            yield cut_rows(piece, begin, row, rows=rows)
        end = _find_command_end(rows, row)
        yield cut_rows(piece, row, end, Kind.SHELL, rows)
        begin = row = end
    if begin < len(rows):
        yield cut_rows(piece, begin, len(rows), rows=rows)


def _strip_second_prompts(rows: list[str]) -> list[str]:
    """Return the rows without the ``> `` that a shell shows in front of the rest of an open command."""
    stripped, open_command = [], False
    for row in rows:
        prompted = PROMPTED_LINE.match(row) is not None
        if open_command and not prompted and (rest := _SECOND_PROMPT.match(row)):
            row = row[rest.end() :]
        elif prompted:
            open_command = _OPEN_COMMAND.search(row) is not None
        else:
            open_command = False
        stripped.append(row)
    return stripped


_SECOND_PROMPT = re.compile(r"\s{0,8}>(?: |$)")
_OPEN_COMMAND = re.compile(
    r"(?:\\|\bdo|\||&&|<<-?\s*['\"]?\w{1,40}['\"]?[^\n]{0,200})\s*$|^\s{0,8}\S{0,80}[$#%] for \w"
)
"""The end of a row after which the shell asks for more, or the beginning of a loop."""


def _is_typed(rows: Sequence[str], row: int) -> bool:
    """True for a row that a person types into a shell."""
    line = rows[row]
    if names_package(line):
        return False
    alone = is_command(line) or any(one.match(line) for one in (PROMPTED_LINE, _PLAIN_SHELL, _SHOW))
    given = _find_given_text(rows, row) is not None
    return alone or given or _find_loop_end(rows, row) is not None or _is_used(rows, row)


def _expand_variables(rows: list[str]) -> list[str]:
    """Replace the shell variables that rows above assign plain words to. Other expansions do not change."""
    known: dict[str, str] = {}
    expanded = []
    for row in rows:
        if known and len(row) < MAX_ROW_CHARS:
            longer = _VARIABLE.sub(lambda found: known.get(found[1] or found[2], found[0]), row)
            row = longer if len(longer) < MAX_ROW_CHARS else row
        if (assigned := _ASSIGNMENT.match(row)) is not None and len(known) < MAX_VARIABLES:
            known[assigned["name"]] = assigned["double"] or assigned["single"] or assigned["bare"] or ""
        expanded.append(row)
    return expanded


MAX_VARIABLES = 40
MAX_ROW_CHARS = 4_000
_VARIABLE = re.compile(r"\$(?:\{(\w{1,40})\}|(\w{1,40}))")


def _is_used(rows: Sequence[str], row: int) -> bool:
    """True for a row that assigns a shell variable above a command or a loop. Near a prompt, such a row is output."""
    if not _ASSIGNS.match(rows[row]):
        return False
    near = rows[row + 1 : row + MAX_NEAR_ROWS]
    below = next((line for line in near if line.strip() and not _ASSIGNS.match(line)), "")
    typed = is_command(below) or _LOOP_HEAD.match(below) is not None
    return typed and not any(map(PROMPTED_LINE.match, (*rows[max(0, row - MAX_NEAR_ROWS) : row], below)))


MAX_NEAR_ROWS = 20
_ASSIGNS = re.compile(r"\s{0,8}(?:export )?[A-Za-z_]\w{0,40}=\S")


def _find_loop_end(rows: Sequence[str], row: int) -> int | None:
    """Return the row after ``done`` of a loop in several rows that begins at ``row``; None for any other row."""
    head = _LOOP_HEAD.match(rows[row])
    below = rows[row + 1].strip() if row + 1 < len(rows) else ""
    if head is None or not (head["do"] or (head.end() == len(rows[row].rstrip()) and below == "do")):
        return None
    ends = range(row + 1, min(len(rows), row + MAX_LOOP_ROWS))
    return next((end + 1 for end in ends if re.match(r"\s*done\b", rows[end])), None)


MAX_LOOP_ROWS = 60


def _is_echoed(rows: Sequence[str], row: int) -> bool:
    """True for a command that an exception's message quotes: ``Invoked with:``, and below it the child's command."""
    above = next((rows[at] for at in range(row - 1, -1, -1) if rows[at].strip()), "")
    if not above.rstrip().endswith(":") or PROMPTED_LINE.match(rows[row]):
        return False
    return any(line.startswith("Traceback (most recent") for line in rows[:row])


_HEREDOC = re.compile(r"(?<!<)<<(?!<)-?\s*(['\"]?)(\w{1,40})\1")


def _find_command_end(rows: Sequence[str], row: int) -> int:
    """Return the row after the command that begins at ``row``."""
    if found := _HEREDOC.search(rows[row]):
        return next((end + 1 for end in range(row + 1, len(rows)) if rows[end].strip() == found[2]), len(rows))
    if (end_of_loop := _find_loop_end(rows, row)) is not None:
        return end_of_loop
    if (given := _find_given_text(rows, row)) is not None:
        return row + given[0].count("\n") + 1
    end = row + 1
    comment = rows[row].lstrip().startswith("//")
    while end < len(rows) and (_continues(rows, end) or (not comment and _is_flag_row(rows[end]))):
        end += 1
    return end


def _continues(rows: Sequence[str], row: int) -> bool:
    above = rows[row - 1].rstrip()
    return above.endswith("\\") or breaks_in_path(above, rows[row])


def _is_flag_row(line: str) -> bool:
    """True for a row of flags below a command. Reporters forget the backslash before such a row."""
    return bool(re.match(r"\s*--?[a-z][\w-]*(?:[= ]|$)", line))


_SINGLE, _DOUBLE = r"'[^']{1,20000}'", r'"(?:[^"\\]|\\.){1,20000}"'
_PIPED = re.compile(
    rf"\s{{0,8}}(?:{PROMPT})?(?P<writer>echo(?: -\w{{1,3}})?|printf)[ \t]+(?P<text>{_SINGLE}|{_DOUBLE})"
    r"[ \t]*\|[ \t]*(?:\\\n[ \t]*)?(?P<command>[^\n]{1,4000})",
    re.S,
)
"""``echo "…" | tool -``. The text may have several rows."""
_HERE_STRING = re.compile(
    rf"\s{{0,8}}(?:{PROMPT})?(?P<command>[^\n<]{{1,4000}})<<<[ \t]*(?P<text>{_SINGLE}|{_DOUBLE})[ \t]*(?=\n|$)", re.S
)
"""``tool <<< "…"``"""


def _find_given_text(rows: Sequence[str], row: int) -> tuple[str, str, str] | None:
    """Return a command that is given text on its row, with the command proper and the text; None for another row."""
    if "<<<" not in rows[row] and not re.match(rf"\s{{0,8}}(?:{PROMPT})?(?:echo|printf)\b", rows[row]):
        return None
    below = "\n".join(rows[row : row + MAX_GIVEN_ROWS])
    found = _PIPED.match(below) or _HERE_STRING.match(below)
    if found is None or not is_command(found["command"]):
        return None
    text = found["text"][1:-1]
    if found["text"].startswith('"'):
        text = re.sub(r'\\(["\\$`])', r"\1", text)
    writer = found.groupdict().get("writer") or ""
    if writer == "printf" or "e" in writer.removeprefix("echo"):
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return found[0], found["command"], text


MAX_GIVEN_ROWS = 300


def split_heredoc(piece: Piece) -> list[Piece]:
    """Split a here-document from its command. The file that the command writes gives the document its name."""
    rows = piece.text.split("\n")
    if piece.kind is Kind.SHELL and (given := _find_given_text(rows, 0)) is not None:
        _, command, text = given
        body = replace(piece, kind=Kind.OUTPUT, text=f"{text}\n", cue=Cue.NONE)
        return [replace(piece, text=f"{command}\n"), body]
    found = _HEREDOC.search(rows[0]) if piece.kind is Kind.SHELL else None
    if found is None:
        return [piece]
    end = next((i for i in range(1, len(rows)) if rows[i].strip() == found[2]), len(rows) - 1)
    target = re.search(r">>? *([\w./+-]{1,200})", rows[0])
    name = target[1].rpartition("/")[2] if target else ""
    body = replace(cut_rows(piece, 1, end, Kind.OUTPUT, rows), name=name or piece.name, cue=Cue.NONE)
    return [cut_rows(piece, 0, 1, rows=rows), body]


_ARGUMENT = re.compile(
    rf"^\s{{0,8}}(?:{PROMPT})?python[23.]{{0,4}} (?:-\w )?-c +(?P<q>['\"])(?P<code>.{{1,4000}})(?P=q)\s*$", re.S
)


def read_argument_program(piece: Piece) -> Piece | None:
    """Return the program of ``python -c "…"``; None for any other command."""
    code = read_argument(piece.text)
    if code is None or _VERSION_QUERY.fullmatch(code):
        return None
    repair = Repair(kind="take-argument", detail="took the program that is given to python -c")
    return replace(piece, kind=Kind.PYTHON, text=f"{code}\n", repairs=(*piece.repairs, repair))


_VERSION_QUERY = re.compile(
    r"\s*(?:(?:import|from) [\w., ]{1,200}+;?\s*){1,8}+print\([^\n;]{0,200}?version[^\n;]{0,200}\)\s*", re.I
)
"""A program that prints only versions describes the environment."""


def read_argument(command: str) -> str | None:
    """Return the text that ``python -c "…"`` is given; None for any other command."""
    found = _ARGUMENT.match(command[:5000])
    if found is None:
        return None
    return (found["code"].replace('\\"', '"') if found["q"] == '"' else found["code"]).strip()


_SHOW = re.compile(
    rf"\s{{0,8}}(?:{PROMPT}|> ?)?(?:(?:cat|less|more|bat)|(?P<part>head|tail)(?: +-[\w-]{{1,8}}(?: +\d{{1,5}})?)?)"
    r" +(?P<name>[\w./+-]{1,200})\s*$"
)
"""A command that shows a file. Some people's prompt is a plain ``>``."""


def name_shown_files(parts: Sequence[Piece]) -> Iterator[Piece]:
    """Yield ``parts``. The part below ``$ cat model.mlir`` gets the name of that file.

    A file that a program above has written is output, and not part of the testcase.
    """
    name, above, written = "", "", False
    for part in parts:
        if part.kind is Kind.SHELL:
            shown = _SHOW.match(part.text)
            name = shown["name"].rpartition("/")[2] if shown and not shown["part"] else ""
            written = shown is not None and _is_written(shown["name"], above)
        elif written:
            part, name, written = replace(part, kind=Kind.CONFIG), "", False
        elif name:
            part, name = replace(part, name=name, cue=Cue.NONE), ""
        above = f"{above}\n{part.text}"[-MAX_ABOVE_CHARS:]
        yield part


MAX_ABOVE_CHARS = 20_000


def _is_written(name: str, above: str) -> bool:
    """True if a program above opens the file to write it."""
    gap = r"\s{0,4}"
    opened = rf"""\bopen\({gap}["']{re.escape(name)}["']{gap},{gap}(?:mode=)?["']w"""
    return re.search(opened, above) is not None
