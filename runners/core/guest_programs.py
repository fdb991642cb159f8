"""Where our programs lie inside the sandbox, and the steps that run them. Pure."""

from __future__ import annotations

FOLDER = "/opt/reprobot"
"""Inside the sandbox: holds ``runners/guest`` and nothing else."""
GUEST = f"{FOLDER}/runners/guest"
LAUNCHER = f"{GUEST}/launch.py"

Step = tuple[str, ...]


def launch(program: str, *arguments: str) -> Step:
    """The step that runs ``runners/guest/PROGRAM`` with the environment's Python: ``launch("tvm.diagnose", …)``."""
    return ("python", LAUNCHER, program, *arguments)


def is_launch(step: Step, program: str = "") -> bool:
    """True if a step runs one of our programs: any of them, or the one named."""
    return step[:2] == ("python", LAUNCHER) and (not program or step[2:3] == (program,))
