"""Check the files and folders that a command will write, before its first run: a run may take minutes."""

from __future__ import annotations

import os
from pathlib import Path

from runners.core.errors import InfraError, UserError


def check_outputs(*paths: Path | None) -> None:
    """Refuse an output file that cannot be written. No file is left behind.

    Raises:
        UserError: with the reason and the next step.
    """
    import tempfile  # the command line imports this module at each start

    for path in paths:
        if path is None:
            continue
        if path.is_dir():
            raise UserError(f"{path} is a folder: name a file in it")
        if not path.absolute().parent.is_dir():
            raise UserError(f"{path} cannot be written: there is no folder {path.absolute().parent}; make it first")
        is_device = path.exists() and not path.is_file()  # such as /dev/stdout, which is written in place
        if not os.access(path if is_device else path.absolute().parent, os.W_OK):
            raise UserError(f"{path} cannot be written (permission denied): name another file")
        if is_device:
            continue
        try:  # permissions do not show that a file system is full or accepts no files
            with tempfile.TemporaryFile(dir=path.absolute().parent):
                pass
        except OSError as error:
            raise UserError(f"{path} cannot be written ({error.strerror}): name another file") from None


def check_results(folder: Path) -> None:
    """Make the folder of a job's results, or refuse it before the first run.

    Raises:
        UserError: with the reason and the next step.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror}): name another folder") from None
    check_outputs(folder / "result.json")


def check_cache(root: Path) -> None:
    """Refuse a cache that cannot be written: environments, results of searches and guest files are stored there.

    Raises:
        InfraError: with the reason and the next step.
    """
    import tempfile  # the command line imports this module at each start

    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        raise InfraError(
            f"the cache {root} cannot be written ({error.strerror}): "
            "set REPROBOT_CACHE to a folder that you may write, or free some space"
        ) from None
