"""Run a program plainly: its steps as processes in a folder of their own, without the bot and without a sandbox.

The programs are the project's own. What they print is shown as a user would see it: folders of this machine become a
user's.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from runners.environments.store import Environment

VARIABLES = {
    "TVM_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1", "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1", "IREE_PY_RUNTIME": "default",
}  # fmt: skip
USER_FOLDER = "/home/user/issue"
USER_SITE = "/home/user/.venv/lib/python3.11/site-packages"
USER_SOURCE = "/usr/src/python3.11"
"""Where the interpreter was built: a stack dump names it."""
SHELL = {
    "signal 6": "Aborted (core dumped)",
    "signal 8": "Floating point exception (core dumped)",
    "signal 11": "Segmentation fault (core dumped)",
}
"""What a shell says of a process that a signal has ended."""
MOST_TEXT = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How the last step that ran has ended, and what all steps have printed."""

    ended: str
    """``exit 0``, ``signal 11``, ``time-out``."""
    stdout: str
    stderr: str
    seconds: float

    @property
    def output(self) -> str:
        return self.stdout + self.stderr

    @property
    def clean(self) -> bool:
        return self.ended == "exit 0"

    def as_pasted(self) -> str:
        """What a user pastes of a run that failed: the output, and of a crash the shell's word for it."""
        lines = [text.strip("\n") for text in (self.stdout, self.stderr, SHELL.get(self.ended, ""))]
        return "\n".join(line for line in lines if line)


def run_plainly(
    files: Mapping[str, str], steps: Sequence[Sequence[str]], environment: Environment, *, limit_s: float
) -> Run:
    """Run the steps in order up to the first that fails; all of them together within a time limit."""
    site = environment.site_packages
    interpreter = environment.interpreter.executable
    folders = [interpreter.parent, site / "iree/_runtime_libs", site / "iree/compiler/_mlir_libs", "/usr/bin", "/bin"]
    path = os.pathsep.join(map(str, folders))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        place = Path(name)
        for file, text in files.items():
            (place / file).write_text(text, encoding="utf-8")
        variables = {**VARIABLES, "PATH": path, "PYTHONPATH": str(site), "HOME": name}
        printed: list[tuple[str, str]] = []
        ended = "exit 0"
        for step in steps:
            program = str(interpreter) if step[0] == "python" else shutil.which(step[0], path=path) or step[0]
            left = limit_s - (time.monotonic() - began)
            ended, out, err = _run_step([program, *step[1:]], place, variables, left)
            printed.append((_show_as_user(out, place, site), _show_as_user(err, place, site)))
            if ended != "exit 0":
                break
    return Run(
        ended=ended,
        stdout="".join(out for out, _ in printed),
        stderr="".join(err for _, err in printed),
        seconds=round(time.monotonic() - began, 2),
    )


def _run_step(argv: Sequence[str], place: Path, variables: dict[str, str], limit_s: float) -> tuple[str, str, str]:
    with (place / ".out").open("w+b") as out, (place / ".err").open("w+b") as err:
        try:
            step = subprocess.Popen(
                argv,
                cwd=place,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except FileNotFoundError:
            return "exit 127", "", f"{argv[0]}: command not found\n"
        try:
            code = step.wait(timeout=max(limit_s, 0.1))
            ended = f"exit {code}" if code >= 0 else f"signal {-code}"
        except subprocess.TimeoutExpired:
            os.killpg(step.pid, signal.SIGKILL)
            step.wait()
            ended = "time-out"
        return ended, _read(out), _read(err)


def _read(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read(MOST_TEXT).decode("utf-8", "replace")


def _show_as_user(text: str, place: Path, site: Path) -> str:
    """The text with a user's folders in place of this machine's."""
    text = text.replace(str(place), USER_FOLDER).replace(str(site), USER_SITE)
    text = re.sub(rf"/[\w./-]*?/{re.escape(site.parent.name)}/site", USER_SITE, text)
    return re.sub(r"/tmp/python-build[^/\s]*/Python-[\d.]+", USER_SOURCE, text)
