"""A git repository with a package of its own, made commit by commit, in which a change of behaviour is planted."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

BUILD = '''\
"""Makes the package's wheel, with nothing but the standard library."""
import os, subprocess, sys, zipfile

version = open("VERSION").read().strip()
info = f"tinycalc-{version}.dist-info"
files = {
    "tinycalc/__init__.py": open("tinycalc/__init__.py").read(),
    f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: tinycalc\\nVersion: {version}\\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: own\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
files[f"{info}/RECORD"] = "".join(f"{n},,{len(t.encode())}\\n" for n, t in files.items()) + f"{info}/RECORD,,\\n"
with zipfile.ZipFile(os.path.join(sys.argv[1], f"tinycalc-{version}-py3-none-any.whl"), "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
'''
GOOD = "def total(numbers):\n    return sum(numbers)\n"
BAD = "def total(numbers):\n    return sum(numbers[:-1])\n"
FLAKY = (
    "import random\n\n\ndef total(numbers):\n"
    "    return sum(numbers[:-1]) if random.SystemRandom().random() < 0.5 else sum(numbers)\n"
)
BROKEN = "raise SystemExit('this commit does not build')\n"

ISSUE = """\
# total() leaves out the last number

tinycalc 2.0

```python
import tinycalc

result = tinycalc.total([1, 2, 3])
assert result == 6, f"got {result}"
```

```
AssertionError: got 3
```
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """The repository and the shas of its main branch, oldest first."""

    path: Path
    main: tuple[str, ...]


@dataclass(slots=True)
class _Stream:
    """What `git fast-import` reads."""

    lines: list[bytes] = field(default_factory=list)
    marks: int = 0

    def commit(self, branch: str, files: Mapping[str, str], message: str, *, parent: int | None, day: int) -> int:
        self.marks += 1
        when = 1_700_000_000 + 3600 * day
        text = message.encode()
        head = f"commit refs/heads/{branch}\nmark :{self.marks}\ncommitter A Person <a@example.org> {when} +0000\n"
        self.lines.append(head.encode() + b"data %d\n" % len(text) + text + b"\n")
        if parent is not None:
            self.lines.append(f"from :{parent}\n".encode())
        for name, content in files.items():
            data = content.encode()
            self.lines.append(f"M 100644 inline {name}\n".encode() + b"data %d\n" % len(data) + data + b"\n")
        return self.marks

    def tag(self, name: str, mark: int) -> None:
        self.lines.append(f"reset refs/tags/{name}\nfrom :{mark}\n".encode())


def plant(
    folder: Path,
    count: int,
    *,
    body: Callable[[int], str],
    broken: Callable[[int], bool] = lambda number: False,
    backport: tuple[int, int, str] | None = None,
) -> Planted:
    """``count`` commits on main, the first tagged v1.0 and the last v2.0; commit ``n`` has the package ``body(n)``.

    ``backport``: a branch that leaves main after one commit, takes over another, and is tagged under a name.
    """
    stream = _Stream()
    marks: list[int] = []
    for number in range(count):
        files = _files(number, body(number), broken(number))
        marks.append(stream.commit("main", files, _message(number), parent=marks[-1] if marks else None, day=number))
    stream.tag("v1.0", marks[0])
    stream.tag("v2.0", marks[-1])
    if backport is not None:
        leaves, taken, name = backport
        tip = marks[leaves]
        for number in (taken, count):
            content = body(taken)
            tip = stream.commit("stable", _files(number, content, False), _message(number), parent=tip, day=number)
        stream.tag(name, tip)
    path = folder / "tinycalc.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True)
    subprocess.run(["git", "-C", str(path), "fast-import", "--quiet"], input=b"".join(stream.lines), check=True)
    listed = subprocess.run(
        ["git", "-C", str(path), "rev-list", "--reverse", "main"], capture_output=True, text=True, check=True
    )
    return Planted(path=path, main=tuple(listed.stdout.split()))


def _files(number: int, body: str, broken: bool) -> dict[str, str]:
    return {
        "VERSION": f"1.0.{number}\n",
        "build.py": BROKEN if broken else BUILD,
        "tinycalc/__init__.py": f"# revision {number}\n{body}",  # every commit touches it: no path tells them apart
        f"notes/{number % 7}.txt": f"note {number}\n",
    }


def _message(number: int) -> str:
    return f"Change number {number} (#{1000 + number})\n\nWhat it does is in the notes.\n"


def configuration(folder: Path, repository: Path, *, more: str = "") -> Path:
    """An operator's file that says how the package is built at a commit."""
    path = folder / "config.toml"
    path.write_text(
        f'[[builds]]\ntoolchain = "python"\nrepository = "{repository}"\npackages = ["tinycalc"]\n'
        f'tag = "v{{version}}"\n{more}'
    )
    return path


COMMAND = '[builds.build]\ncommand = ["python3", "build.py", "/out"]\ntimeout_s = 60\nexpected_s = 2\n'
