"""Compile a shared library in which every function reports that there is no device."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from runners.core.errors import InfraError

_NO_DEVICE = 100
"""cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE have the same value."""
_STATUS = "cuGetErrorString"
"""This function of the driver returns a status, as all others do, and the text through a pointer."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_VERSION = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*", re.ASCII)


def render_stub_source(functions: Iterable[str]) -> str:
    """Return C source in which each function returns the status "no device", or this text if it describes errors."""
    return "".join(
        f'const char *{name}(void) {{ return "no device"; }}\n'
        if name.endswith("GetErrorString") and name != _STATUS
        else f"int {name}(void) {{ return {_NO_DEVICE}; }}\n"
        for name in functions
    )


def compile_stub(soname: str, functions: Mapping[str, Iterable[str]], folder: Path) -> None:
    """Write the library ``soname`` into ``folder``. ``functions`` are names by symbol version; "" for no version.

    Raises:
        InfraError: there is no C compiler.
        ValueError: a name is not a plain C name or version: names come from wheels, and the source is compiled.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise InfraError("stand-ins for the libraries of CUDA need a C compiler once: install gcc")
    named = {version: sorted(names) for version, names in functions.items()}
    source = render_stub_source(_check_names(soname, named))
    arguments = ["-shared", "-fPIC", "-O1", "-w", f"-Wl,-soname,{soname}", "-x", "c", "-", "-o", str(folder / soname)]
    script = folder / "versions"
    versioned = {version: names for version, names in named.items() if version}
    if versioned:
        text = "".join(
            f"{version} {{ global: {' '.join(f'{name};' for name in names)} }};\n"
            for version, names in versioned.items()
        )
        script.write_text(text, encoding="utf-8")
        arguments.append(f"-Wl,--version-script={script}")
    done = subprocess.run(
        [compiler, *arguments], input=source, capture_output=True, text=True, check=False, umask=0o022
    )
    script.unlink(missing_ok=True)
    if done.returncode != 0:
        raise InfraError(f"{compiler} cannot make {soname}: {done.stderr.strip()[-300:]}")


def _check_names(soname: str, functions: Mapping[str, Iterable[str]]) -> list[str]:
    """Return all function names. Refuse any that is more than a name in C or in a version script."""
    names = sorted({name for group in functions.values() for name in group})
    unfit = [name for name in names if not _IDENTIFIER.fullmatch(name)]
    unfit += [word for word in (soname, *filter(None, functions)) if not _VERSION.fullmatch(word)]
    if unfit:
        raise ValueError(f"{soname}: {unfit[0][:100]!a} is no plain name")
    return names
