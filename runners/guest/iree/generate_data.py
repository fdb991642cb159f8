"""Append generated constants to an MLIR file: ``generate_data.py FILE NAME=TYPE*COUNT…``.

The values repeat in a short cycle, because a compiler treats constants with equal elements differently.
"""

from __future__ import annotations

import struct
import sys

FORMATS = {"f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q"}
CYCLE = 31
"""Number of values before they repeat: a prime, so that no row of a usual matrix equals the next."""


def make_bytes(kind: str, count: int) -> bytes:
    """Return the elements as MLIR stores them: small fractions between -1 and 1, or the integers 0 to 2."""
    order = [7 * i % CYCLE for i in range(CYCLE)]
    if kind == "bf16":
        values = [struct.pack("<f", i / 16 - 15 / 16)[2:] for i in order]
    elif kind.startswith("f"):
        values = [struct.pack(f"<{FORMATS[kind]}", i / 16 - 15 / 16) for i in order]
    else:
        values = [struct.pack(f"<{FORMATS[kind]}", i % 3) for i in order]
    return b"".join(values * (count // CYCLE + 1))[: count * len(values[0])]


def main() -> None:
    path, *wanted = sys.argv[1:]
    rows = []
    for entry in wanted:
        name, _, shape = entry.partition("=")
        kind, _, count = shape.partition("*")
        rows.append(f'      {name}: "0x10000000{make_bytes(kind, int(count)).hex().upper()}"')
    with open(path, "a") as file:
        file.write("\n{-#\n  dialect_resources: {\n    builtin: {\n" + ",\n".join(rows) + "\n    }\n  }\n#-}\n")


if __name__ == "__main__":
    main()
