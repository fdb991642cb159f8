"""Too little memory for our own process, or no disk, is named in one sentence, with exit code 75."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from runners.core.errors import InfraError, explain_shortage
from tests.runners.sandbox.test_lifecycle import traces

ROOT = Path(__file__).parents[3]
ISSUE = """\
---
repository: python/cpython
number: 1
created: 2026-01-01
---
# Division fails

Python 3.11

```python
import json
print(1 / 0)
```

```
ZeroDivisionError: division by zero
```
"""
TOO_LITTLE = (45, 55, 65, 75)
"""MiB of address space: too little for the imports, for the plan, for a sandbox, for a thread. The exact place moves
with the interpreter."""
ENOUGH = 4096
TRIES = 5
STEP = 300 << 10
"""Bytes between the limits of two tries."""


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "out of memory"),
        (ImportError("x.so: failed to map segment from shared object"), "out of memory"),
        (SystemError("error return without exception set"), "as it does where memory ends"),
        (RuntimeError("can't start new thread"), "no thread can be started"),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "no memory or process left"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/state/db"), "/state/db cannot be written (No space left"),
        (OSError(errno.EROFS, os.strerror(errno.EROFS)), "the disk cannot be written (Read-only file system)"),
    ],
)
def test_shortage_is_an_infrastructure_error_with_a_next_step(error: Exception, says: str) -> None:
    found = explain_shortage(error)
    assert isinstance(found, InfraError)
    assert says in str(found)
    assert ": free some" in str(found) or "limit" in str(found)


@pytest.mark.parametrize(
    "error", [SystemError("x"), ValueError("x"), RuntimeError("x"), FileNotFoundError(errno.ENOENT, "x"), OSError()]
)
def test_bug_is_no_shortage(error: Exception) -> None:
    assert explain_shortage(error) is None


@pytest.fixture(scope="module")
def compiled_modules() -> None:
    """Compile our modules first, as an installer does: CPython 3.11 can hang if memory ends in its compiler."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", "bot", "runners"], cwd=ROOT, check=True)


def reproduce(folder: Path, mib: int) -> tuple[subprocess.Popen[str], str, str]:
    """Run the command line with a limit of address space.

    CPython 3.11 can also loop for ever, or crash with a signal, if memory ends inside its own code, where none
    of our statements runs: in one of 200 runs, and at the same limit again. So such a run is repeated with another
    limit.
    """
    (folder / "issue.md").write_text(ISSUE)
    words = [sys.executable, "-m", "bot", "reproduce", str(folder / "issue.md"), "--toolchain", "python"]
    words += ["--versions", "3.11", "--sandbox", "bubblewrap", "--no-bisect"]
    for attempt in range(TRIES):
        size = (mib << 20) + attempt * STEP
        limit = f"import os, resource, sys; resource.setrlimit({resource.RLIMIT_AS}, ({size},) * 2); "
        started = subprocess.Popen(
            [sys.executable, "-c", limit + "os.execv(sys.argv[1], sys.argv[1:])", *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            out, err = started.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            started.kill()
            started.communicate()
            assert traces(started.pid) == []
            continue
        if started.returncode >= 0:
            return started, out, err
        assert traces(started.pid) == []
    raise AssertionError(f"none of {TRIES} runs ended in the hands of our code")


@pytest.mark.sandbox
@pytest.mark.usefixtures("compiled_modules")
@pytest.mark.parametrize("mib", TOO_LITTLE)
def test_own_process_out_of_memory_ends_clearly_and_leaves_no_sandbox(tmp_path: Path, mib: int) -> None:
    """No traceback and no verdict, however early the memory ends."""
    started, out, err = reproduce(tmp_path, mib)
    if "bubblewrap" in err and started.returncode == 2:
        pytest.skip(err.strip())
    assert started.returncode == InfraError.exit_code, err
    assert "Traceback" not in err
    assert "reprobot: " in err.strip().splitlines()[-1]
    assert "ulimit" in err
    assert out == ""
    assert traces(started.pid) == []


@pytest.mark.sandbox
@pytest.mark.usefixtures("compiled_modules")
def test_enough_memory_gives_a_verdict(tmp_path: Path) -> None:
    """The same call without the shortage: so the tests above fail for the shortage alone."""
    started, out, err = reproduce(tmp_path, ENOUGH)
    if "bubblewrap" in err and started.returncode == 2:
        pytest.skip(err.strip())
    assert started.returncode == 0, err
    assert "Confirmed" in out
