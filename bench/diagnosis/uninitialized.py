"""Does what a function is said to read unwritten change with it? ``python bench/diagnosis/uninitialized.py [COUNT]
[VERSION…]``.

Random functions of TIR: loops, conditions on indices and on data, two temporaries that may be written or not, in any
order. ``find_undefined_reads`` interprets each function without its arguments and with them. ``fill_buffers`` fills
its temporaries with one number and with another, and the function is built and run. The number of differing output
elements must equal the number of undefined elements with the arguments, and be at least the number without them. The
arithmetic keeps every difference, so that elements that agree were written.

Exits 1 where they disagree, and prints the function.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("0.25.0", "0.26.0", "0.27.0")
SIZE = 8
SEED = 20_231


def function(draw: random.Random) -> str:
    """The text of one function: ``a`` is read, ``t`` and ``u`` are temporaries, ``b`` is the output."""
    lines = [
        "@T.prim_func",
        f'def f(a: T.Buffer(({SIZE},), "float32"), b: T.Buffer(({SIZE},), "float32")):',
        f'    t = T.alloc_buffer(({SIZE},), "float32")',
        f'    u = T.alloc_buffer(({SIZE},), "float32")',
    ]
    for _ in range(draw.randint(2, 4)):
        lines += loop(draw, draw.choice("tu"))
    return "\n".join([*lines, *loop(draw, "b")])


def loop(draw: random.Random, to: str) -> list[str]:
    kind = draw.choice((f"range({SIZE})", f"range({draw.randint(1, SIZE)})", f"T.unroll({SIZE})"))
    store = f"{to}[{index(draw)}] = {value(draw)}"
    shape = draw.randint(0, 3)
    if shape == 0:
        body = [f"if {condition(draw)}:", f"    {store}"]
    elif shape == 1:
        body = [f"if {condition(draw)}:", f"    {store}", "else:", f"    {to}[{index(draw)}] = {value(draw)}"]
    else:
        body = [store]
    return [f"    for i in {kind}:", *(f"        {line}" for line in body)]


def index(draw: random.Random) -> str:
    return draw.choice(("i", "i", f"{SIZE - 1} - i", "i // 2", f"(i + {draw.randint(1, 5)}) % {SIZE}", "i % 3 * 2"))


def condition(draw: random.Random) -> str:
    number = draw.randint(1, SIZE - 1)
    return draw.choice((f"i < {number}", f"i % 2 == {number % 2}", f"a[{index(draw)}] > T.float32({number})"))


def value(draw: random.Random) -> str:
    read = f"{draw.choice('aatub')}[{index(draw)}]"
    return draw.choice(
        (
            f"{read}",
            f"{read} + T.float32({draw.randint(1, 9)})",
            f"{read} + {draw.choice('atu')}[{index(draw)}]",
            f"T.if_then_else({condition(draw)}, {read}, {draw.choice('atu')}[{index(draw)}])",
            f"T.Select({condition(draw)}, {read}, T.float32({draw.randint(1, 9)}))",
        )
    )


def inside(count: int, version: str) -> None:
    """In the release's own Python: one line per function, as JSON."""
    sys.path.insert(0, str(ROOT))
    import numpy as np
    import tvm
    from tvm import tirx

    from runners.guest.tvm.uninitialized.definedness import find_undefined_reads
    from runners.guest.tvm.uninitialized.diagnoser import fill_buffers

    draw = random.Random(f"{SEED} {version}")
    for _ in range(count):
        text = function(draw)
        parsed = tvm.script.from_source(text)
        a = np.array([draw.randint(0, SIZE) for _ in range(SIZE)], "float32")
        given = {0: a, 1: np.zeros(SIZE, "float32")}
        outputs = []
        for number in (1_000.5, 70_003.25):
            # Bound here: the constant is made for each buffer's type.
            constant = tirx.const(number, "float32")
            built = tvm.compile(fill_buffers(parsed, frozenset("tu"), (), lambda _, one=constant: one), target="llvm")
            b = tvm.runtime.tensor(np.zeros(SIZE, "float32"))
            built(tvm.runtime.tensor(a), b)
            outputs.append(b.numpy())
        told = [sum(use.elements for use in find_undefined_reads(parsed, (), one).uses) for one in (given, {})]
        line = {"text": text, "a": a.tolist(), "differ": int((outputs[0] != outputs[1]).sum()), "told": told}
        sys.stdout.write(json.dumps(line) + "\n")


def main(words: list[str]) -> int:
    """1 where what is said and what differs disagree."""
    from tests.runners.guest.tvm.sweep import environment, variables

    count = int(words[0]) if words else 200
    wrong = 0
    say("| release | functions | with undefined elements | as many as differ | found without arguments | too many |")
    say("|---|---|---|---|---|---|")
    for version in words[1:] or VERSIONS:
        done = subprocess.run(
            [str(environment(version).interpreter.executable), __file__, "inside", str(count), version],
            env=variables(version), capture_output=True, text=True, check=True,
        )  # fmt: skip
        seen = [json.loads(line) for line in done.stdout.splitlines()]
        undefined = [one for one in seen if one["differ"]]
        exact = [one for one in seen if one["told"][0] == one["differ"]]
        without = sum(one["told"][1] > 0 for one in undefined)
        many = sum(one["told"][1] > one["differ"] or one["told"][0] > one["differ"] for one in seen)
        say(f"| {version} | {len(seen)} | {len(undefined)} | {len(exact)} | {without} | {many} |")
        for one in seen:
            if one not in exact or one["told"][1] > one["differ"]:
                wrong += 1
                say(f"\n{one['text']}\na = {one['a']}\ndiffer: {one['differ']}, told: {one['told']}\n")
    return int(wrong > 0)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        inside(int(sys.argv[2]), sys.argv[3])
        sys.exit(0)
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
