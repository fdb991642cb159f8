"""Is it the same failure? Pairs of real outputs, and three ways to answer: ``python -m bench.pairs``.

``record`` runs every program below on every release in the list and keeps what it printed and how it ended
(``bench/pairs/failures.jsonl``), room by room: a run that is cut short keeps the rooms that it finished. The programs
come in rooms: those of one room fail in the same function of the compiler for different reasons, so that the pairs
that must not match are hard ones. Two outputs tell of the same bug when the same check of the compiler failed about
the same operation (`bench.pairs.fresh_rooms` has the rule, and the rooms whose programs were labelled before they
were first run). A program that a release does not refuse gives no output there.

What the figures are worth: outside of the mixed rooms (`bench.pairs.mixed_rooms`) nearly all are clean refusals of
invalid input by a parser, a verifier or an operator's type inference, in programs of one line, on five neighbouring
releases. They say how well messages are told apart. None says anything of reports that people wrote: quoted in part,
edited, from other machines.

Without an argument it prints precision and recall of four ways to answer: the signature's comparison, what the
product rules with one output as the report and the other as the run, exact comparison of the last line, and "both
failed"; for the rooms that the comparison was tuned on, for those that were kept away, for the fresh and the mixed
ones.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TypeVar

from bench.pairs import fresh_rooms, late_rooms, mixed_rooms
from runners.core.failure.array_mismatch import parse_mismatch
from runners.core.failure.compare import SAME, compare_signatures
from runners.core.failure.oracle import OracleContext, classify_run
from runners.core.failure.parse import NATIVE, parse_signature
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Claim, ClaimKind, Exited, Outcome, Signalled, Signature, StepResult, TimedOut
from runners.environments.store import open_store
from runners.toolchains import ALL_FAILURES, find_toolchain

RECORDED = Path(__file__).parent / "failures.jsonl"
MIXED = RECORDED.with_name("mixed.jsonl")
"""Written by `bench.pairs.mixed`."""
TVM = ("0.25.0", "0.25.0.post1", "0.26.0", "0.27.0", "0.27.0.post1")
IREE = ("2.9.0", "3.3.0", "3.6.0", "3.10.0", "3.13.0")
Programs = TypeVar("Programs")
MAX_OUTPUT = 3_000
KEPT_AWAY = frozenset({"repeat", "tile", "scatter", "cumsum", "resize", "slices", "regions"})
"""Rooms that nobody had looked at when the comparison was changed for the first time."""

FRESH = frozenset({*fresh_rooms.EXPRESSIONS, *fresh_rooms.OPERATIONS}) - fresh_rooms.HOLDOUT
"""Rooms labelled by reason before they were first run. Looked at since: what they show is how it was tuned."""

EMIT = """\
import tvm
from tvm import relax
from tvm.relax import op

annotation = getattr(relax, "TensorStructInfo", None) or relax.TensorType
block = relax.BlockBuilder()


def tensor(shape, dtype="float32"):
    return relax.Var("x", annotation(shape, dtype))


x, y = tensor((4, 6)), tensor((5, 7))
with block.function("main", [x, y]):
    with block.dataflow():
        out = block.emit_output(block.emit({expression}))
    block.emit_func_output(out)
"""
EXPRESSIONS = {
    "matmul": ("op.matmul(x, y)", "op.matmul(x, tensor((), 'float32'))", "op.matmul(x, tensor((6, 2), 'int8'))"),
    "reshape": ("op.reshape(x, (5, 5))", "op.reshape(x, (-1, -1))"),
    "concat": ("op.concat([x, y], axis=0)", "op.concat([x, x], axis=3)", "op.concat([x, tensor((4,))], axis=0)"),
    "permute_dims": ("op.permute_dims(x, [0])", "op.permute_dims(x, [0, 0])", "op.permute_dims(x, [0, 5])"),
    "add": ("op.add(x, y)", "op.add(x, tensor((4, 6), 'int32'))", "op.add(x, relax.ShapeExpr([4, 6]))"),
    "split": ("op.split(x, 5, axis=1)", "op.split(x, 2, axis=4)", "op.split(x, 0, axis=0)"),
    "expand_dims": ("op.expand_dims(x, [7])", "op.expand_dims(x, [0, 0])"),
    "squeeze": ("op.squeeze(x, [0])", "op.squeeze(x, [9])"),
    "strided_slice": (
        "op.strided_slice(x, axes=[0, 1], begin=[0], end=[1])",
        "op.strided_slice(x, axes=[5], begin=[0], end=[1])",
    ),
    "broadcast_to": ("op.broadcast_to(x, (4, 7))", "op.broadcast_to(x, (6,))"),
    "where": ("op.where(x, x, x)", "op.where(tensor((4, 6), 'bool'), x, y)"),
    "layer_norm": (
        "op.nn.layer_norm(x, tensor((5,)), tensor((6,)), axes=[1])",
        "op.nn.layer_norm(x, tensor((6,)), tensor((6,)), axes=[3])",
    ),
    "conv2d": (
        "op.nn.conv2d(tensor((1, 3, 8, 8)), tensor((4, 2, 3, 3)))",
        "op.nn.conv2d(tensor((1, 3, 8, 8)), tensor((4, 3, 3)))",
    ),
    "layout": (
        "op.nn.max_pool2d(tensor((1, 3, 8, 8)), layout='NXY')",
        "op.nn.max_pool2d(tensor((1, 3, 8, 8)), pool_size=(1, 2, 3))",
    ),
    "take": ("op.take(x, tensor((2,), 'float32'), axis=0)", "op.take(x, tensor((2,), 'int64'))"),
    "gather": (
        "op.gather_elements(x, tensor((2,), 'int64'), axis=0)",
        "op.gather_elements(x, tensor((4, 6)), axis=0)",
    ),
    "softmax": ("op.nn.softmax(x, axis=4)", "op.nn.softmax(tensor((3,), 'int32'))"),
    "repeat": ("op.repeat(x, 2, axis=5)",),
    "tile": ("op.tile(x, 2)", "op.tile(x, (2, -1))"),
    "scatter": (
        "op.scatter_elements(x, tensor((2,), 'int64'), tensor((2, 2)))",
        "op.scatter_elements(x, tensor((2, 2), 'int64'), tensor((2, 2), 'int8'))",
        "op.scatter_elements(x, tensor((2, 2)), tensor((2, 2)))",
    ),
    "cumsum": ("op.cumsum(x, axis=3)", "op.cumsum(relax.ShapeExpr([1]), axis=0)"),
    "resize": (
        "op.image.resize2d(tensor((1, 3, 4)), (2, 2))",
        "op.image.resize2d(tensor((1, 3, 4, 4)), (2, 2, 2))",
        "op.image.resize2d(tensor((1, 3, 4, 4)), (2, 2), layout='AB')",
    ),
    "sum": ("op.sum(x, axis=[8])", "op.sum(x, axis=[0, 0])"),
}

MLIR = """\
func.func @f({arguments}) -> {result} {{
{body}
}}
"""
COMPILE = ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "a.mlir", "-o", "a.vmfb")
VMVX = ("iree-compile", "--iree-hal-target-backends=vmvx", "a.mlir", "-o", "a.vmfb")
T = "tensor<4xf32>"
OPERATIONS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "vmvx": tuple(
        (MLIR.format(arguments=f"%a: {T}", result=T, body=f"  %0 = math.{name} %a : {T}\n  return %0 : {T}"), VMVX)
        for name in ("acos", "sinh", "atanh")
    ),
    "verifier": (
        (
            "func.func @f(%a: tensor<4x5xf32>, %b: tensor<6x7xf32>, %c: tensor<4x7xf32>) -> tensor<4x7xf32> {\n"
            "  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<6x7xf32>) outs(%c : tensor<4x7xf32>)"
            " -> tensor<4x7xf32>\n  return %0 : tensor<4x7xf32>\n}\n",
            COMPILE,
        ),
        (
            "func.func @f(%a: tensor<4x5xf32>) -> tensor<21xf32> {\n"
            "  %0 = tensor.collapse_shape %a [[0, 1]] : tensor<4x5xf32> into tensor<21xf32>\n"
            "  return %0 : tensor<21xf32>\n}\n",
            COMPILE,
        ),
    ),
    "types": (
        (f"func.func @f(%a: {T}) -> {T} {{\n  %0 = arith.addi %a, %a : {T}\n  return %0 : {T}\n}}\n", COMPILE),
        (f"func.func @f(%a: {T}) -> {T} {{\n  %0 = arith.addf %a, %b : {T}\n  return %0 : {T}\n}}\n", COMPILE),
        (f"func.func @f(%a: {T}) -> tensor<4xi32> {{\n  return %a : {T}\n}}\n", COMPILE),
    ),
    "unknown": (
        (f'func.func @f(%a: {T}) -> {T} {{\n  %0 = "mine.op"(%a) : ({T}) -> {T}\n  return %0 : {T}\n}}\n', COMPILE),
        (f'func.func @f(%a: {T}) -> {T} {{\n  %0 = "arith.adf"(%a) : ({T}) -> {T}\n  return %0 : {T}\n}}\n', COMPILE),
    ),
    "slices": (
        (
            "func.func @f(%a: tensor<4x5xf32>) -> tensor<2x2xf32> {\n"
            "  %0 = tensor.extract_slice %a[0, 0] [2, 2] [1, 1] : tensor<4x5xf32> to tensor<2x3xf32>\n"
            "  return %0 : tensor<2x2xf32>\n}\n",
            COMPILE,
        ),
        (
            "func.func @f(%a: tensor<4x5xf32>) -> tensor<2x2xf32> {\n"
            "  %0 = tensor.extract_slice %a[0] [2] [1] : tensor<4x5xf32> to tensor<2x2xf32>\n"
            "  return %0 : tensor<2x2xf32>\n}\n",
            COMPILE,
        ),
    ),
    "regions": (
        (
            f"func.func @f(%a: {T}) -> {T} {{\n  %c = arith.constant true\n  %0 = scf.if %c -> {T} {{\n"
            f"    scf.yield %a : {T}\n  }}\n  return %0 : {T}\n}}\n",
            COMPILE,
        ),
        (
            f"func.func @f(%a: {T}) -> {T} {{\n  %c = arith.constant true\n  %0 = scf.if %c -> {T} {{\n"
            f"    scf.yield\n  }} else {{\n    scf.yield %a : {T}\n  }}\n  return %0 : {T}\n}}\n",
            COMPILE,
        ),
    ),
    "flag": (
        ("module {}\n", (*COMPILE, "--iree-no-such-flag=1")),
        ("module {}\n", ("iree-compile", "--iree-hal-target-backends=toaster", "a.mlir", "-o", "a.vmfb")),
        ("module {}\n", ("iree-compile", "--iree-input-type=cobol", "a.mlir", "-o", "a.vmfb")),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failing run. ``bug`` is the program, or what the author says that several programs show: the truth."""

    room: str
    bug: str
    version: str
    code: int
    output: str
    variant: str = ""
    """Which of the programs that show one failure."""
    where: str = ""
    """Where the time was up, if it was."""


# ---------------------------------------------------------------------------------------------- recording


def record(rooms: Sequence[str] = ()) -> Iterator[tuple[str, list[Failure]]]:
    """Each room named, or each of all, with its failures as soon as it has them."""
    for room in rooms or [*_expressions(), *_operations()]:
        yield room, [*_record_tvm([room]), *_record_iree([room])]


def keep(room: str, found: Sequence[Failure]) -> None:
    """The room's outputs in place of those that it had, in one step."""
    lines = (json.dumps({f: getattr(x, f) for f in Failure.__slots__}) for x in (*_others(room), *found))
    part = RECORDED.with_suffix(".part")
    part.write_text("".join(f"{line}\n" for line in lines))
    part.replace(RECORDED)


def _others(room: str) -> list[Failure]:
    kept = (Failure(**json.loads(line)) for line in RECORDED.read_text().splitlines())
    return [one for one in kept if one.room != room]


def _record_tvm(rooms: Sequence[str]) -> Iterator[Failure]:
    store, catalogue = open_store(), load_catalogue()
    for version in TVM:
        environment = store.get_environment(catalogue.find("tvm", version))
        variables = {
            **os.environ, **find_toolchain("tvm").VARIABLES, "PYTHONPATH": str(environment.site_packages),
        }  # fmt: skip
        for room, expressions in _asked(_expressions(), rooms):
            for bug, expression in expressions:
                text = EMIT.format(expression=expression)
                words = [str(environment.interpreter.executable), "a.py"]
                yield from _ran(room, bug, version, {"a.py": text}, words, variables)


def _record_iree(rooms: Sequence[str]) -> Iterator[Failure]:
    store, catalogue = open_store(), load_catalogue()
    for version in IREE:
        environment = store.get_environment(catalogue.find("iree", version))
        tools = find_toolchain("iree").list_tools(environment.site_packages)
        for room, programs in _asked(_operations(), rooms):
            for bug, (text, (tool, *arguments)) in programs:
                words = [str(environment.site_packages / tools[tool][0]), *arguments]
                yield from _ran(room, bug, version, {"a.mlir": text}, words, dict(os.environ))


def _expressions() -> dict[str, list[tuple[str, str]]]:
    """Room → its bugs, each with the expression that shows it."""
    numbered = {
        room: [(f"{room} {number}", text) for number, text in enumerate(texts)] for room, texts in EXPRESSIONS.items()
    }
    fresh = {
        room: [(f"{room}: {one.reason}", one.program) for one in programs]
        for room, programs in fresh_rooms.EXPRESSIONS.items()
    }
    return numbered | fresh


def _operations() -> dict[str, list[tuple[str, tuple[str, tuple[str, ...]]]]]:
    """Room → its bugs, each with the MLIR and the command that show it."""
    numbered: dict[str, list[tuple[str, tuple[str, tuple[str, ...]]]]] = {
        room: [(f"{room} {number}", program) for number, program in enumerate(programs)]
        for room, programs in OPERATIONS.items()
    }
    fresh: dict[str, list[tuple[str, tuple[str, tuple[str, ...]]]]] = {
        room: [(f"{room}: {one.reason}", (one.program, COMPILE)) for one in programs]
        for room, programs in fresh_rooms.OPERATIONS.items()
    }
    return numbered | fresh


def _asked(programs: Mapping[str, Programs], rooms: Sequence[str]) -> list[tuple[str, Programs]]:
    return [(room, found) for room, found in programs.items() if not rooms or room in rooms]


def _ran(
    room: str, bug: str, version: str, files: dict[str, str], words: Sequence[str], variables: dict[str, str]
) -> Iterator[Failure]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        done = subprocess.run(
            words,
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
    if done.returncode:
        said = scrubbed(f"{done.stdout}\n{done.stderr}".strip())
        whole = said if len(said) <= MAX_OUTPUT else f"{said[: MAX_OUTPUT // 2]}\n[…]\n{said[-MAX_OUTPUT // 2 :]}"
        yield Failure(room=room, bug=bug, version=version, code=done.returncode, output=whole)


def scrubbed(text: str) -> str:
    """Without the paths of the machine that recorded it."""
    text = re.sub(r"/[^\s\"':]*?/(?=(?:site|site-packages)/)", "/opt/env/", text)
    text = re.sub(r"/(?:tmp|root|home|workspace|work)[^\s\"':,)]*?(?=[\w.+-]*[\"':,)\s])", "/x/", text)
    return text


# ---------------------------------------------------------------------------------------------- judging


def load() -> list[Failure]:
    """Every output, with the compiler's files where the product has them."""
    lines = (line for path in (RECORDED, MIXED) for line in path.read_text().splitlines())
    return [Failure(**json.loads(line.replace(STORED, MOUNTED))) for line in lines]


STORED, MOUNTED = "/opt/env/site/", "/opt/env/lib/python3.11/site-packages/"
"""The store keeps an environment's packages in a folder that a probe sees under another name. Recorded without a
sandbox, the outputs have the first, by which the parser knows no frame of the compiler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    pairs: int
    same: int
    right: int
    claimed: int

    @property
    def precision(self) -> float:
        return self.right / self.claimed if self.claimed else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.same if self.same else 1.0


def pairs(failures: Sequence[Failure]) -> list[tuple[Failure, Failure]]:
    """Within a room, all: the same program on two releases, and its neighbours; never a run with itself."""
    return [
        (a, b)
        for a, b in combinations(failures, 2)
        if a.room == b.room and (a.bug, a.version, a.variant) != (b.bug, b.version, b.variant)
    ]


def by_signature(a: Failure, b: Failure) -> bool:
    first, second = read(a), read(b)
    return first is not None and second is not None and compare_signatures(first, second, ALL_FAILURES).score >= SAME


@cache
def read(failure: Failure) -> Signature | None:
    return parse_signature(failure.output, ALL_FAILURES, ended(failure))


def ended(failure: Failure) -> Exited | Signalled | TimedOut:
    if failure.where:
        return TimedOut(where=failure.where)
    return Signalled(code=-failure.code) if failure.code < 0 else Exited(code=failure.code)


def by_ruling(a: Failure, b: Failure) -> bool:
    """What the product says: ``a`` is the report, of the earlier release, and ``b`` a run of it."""
    reported = read(a)
    if reported is None:
        return False
    step = StepResult(argv=("python", "a.py"), ended=ended(b), stderr=b.output)
    claim = Claim(kind=_kind(reported), signature=reported)
    return (
        classify_run(step.ended, [step], OracleContext(claim=claim, vocabulary=ALL_FAILURES)).outcome is Outcome.MATCH
    )


def _kind(reported: Signature) -> ClaimKind:
    if reported.type in NATIVE:
        return ClaimKind.CRASH
    kinds = {"timed-out": ClaimKind.HANG, "AssertionError": ClaimKind.WRONG_RESULT}
    return kinds.get(reported.type, ClaimKind.ERROR)


def by_last_line(a: Failure, b: Failure) -> bool:
    return _last(a) == _last(b)


def _last(failure: Failure) -> str:
    return next((line.strip() for line in reversed(failure.output.splitlines()) if line.strip()), "")


def both_failed(_a: Failure, _b: Failure) -> bool:
    return True


WAYS = {
    "signature": by_signature,
    "ruling": by_ruling,
    "exact last line": by_last_line,
    "any non-zero exit": both_failed,
}


def check(failure: Failure) -> str:
    """The label by the rule: which check failed, not which program was written for it."""
    corrected = {**mixed_rooms.CHECKS, **late_rooms.CHECKS}.get((failure.bug, failure.version), failure.bug)
    return fresh_rooms.ONE_CHECK.get(corrected, corrected)


def as_written(failure: Failure) -> str:
    return failure.bug


def score(failures: Sequence[Failure], way: str, label: Callable[[Failure], str] = check) -> Score:
    said = [(label(a) == label(b), WAYS[way](a, b)) for a, b in pairs(failures)]
    return Score(
        pairs=len(said),
        same=sum(truth for truth, _ in said),
        right=sum(truth and claim for truth, claim in said),
        claimed=sum(claim for _, claim in said),
    )


def tells(failure: Failure) -> bool:
    """Whether an output says more than that something died, hung, or has a NaN where it should not.

    For the mixed rooms. Drawn after the first look, and no label: a bare signal is that of every crash, a recording
    without a sandbox does not say where the time was up, and positions of NaN have no figures. What is left out is
    what no comparison of two outputs can decide; in the product it is the same testcase that ends so twice.
    """
    seen = read(failure)
    return seen is not None and bool(seen.frames or (seen.message and seen.type != "timed-out" and not _nan(seen)))


def _nan(seen: Signature) -> bool:
    arrays = parse_mismatch(seen.message)
    return arrays is not None and arrays.kind == "NaN positions"


def kind(room: str) -> str:
    """How a room was come by: what its figures are worth depends on that."""
    if room in fresh_rooms.HOLDOUT:
        return "holdout"
    if room in late_rooms.TVM or room in late_rooms.IREE:
        return "late holdout"
    if room in mixed_rooms.TVM or room in mixed_rooms.IREE:
        return "mixed"
    return "fresh" if room in FRESH else "kept away" if room in KEPT_AWAY else "tuned on"


def _rows(
    name: str,
    mine: Sequence[Failure],
    labels: Sequence[Callable[[Failure], str]] = (as_written, check),
    ways: Sequence[str] = tuple(WAYS),
) -> None:
    for label in labels:
        for way in ways:
            scored = score(mine, way, label)
            row = (name, label.__name__.replace("_", " "), f"{scored.pairs} ({scored.same})", way)
            sys.stdout.write(f"| {' | '.join(row)} | {scored.precision:.3f} | {scored.recall:.3f} |\n")
    sys.stdout.flush()


def summarize() -> str:
    """Return a table of precision and recall of the product's ruling, by kind of room."""
    rows = ["| pairs | number (same) | precision | recall |", "| --- | --: | --: | --: |"]
    failures = load()
    for name in ("tuned on", "kept away", "fresh", "holdout", "late holdout"):
        scored = score([failure for failure in failures if kind(failure.room) == name], "ruling")
        row = f"| {name} | {scored.pairs} ({scored.same}) | {scored.precision:.3f} | {scored.recall:.3f} |"
        rows.append(row)
    return "\n".join(rows)


def main() -> int:
    if sys.argv[1:2] == ["record"]:
        for room, found in record(sys.argv[2:]):
            keep(room, found)
            sys.stdout.write(f"{room}: {len(found)} failures of {len({x.bug for x in found})} programs\n")
            sys.stdout.flush()
        return 0
    failures = load()
    sys.stdout.write("| rooms | labels | pairs (same) | way | precision | recall |\n|---|---|---|---|---|---|\n")
    for name in ("tuned on", "kept away", "fresh", "holdout", "mixed", "late holdout"):
        _rows(name, [failure for failure in failures if kind(failure.room) == name])
    mixed = [failure for failure in failures if kind(failure.room) == "mixed"]
    _rows("mixed, where both say what failed", [failure for failure in mixed if tells(failure)])
    for room in dict.fromkeys(failure.room for failure in mixed):
        _rows(room, [failure for failure in mixed if failure.room == room], labels=(check,), ways=("signature",))
    return 0
