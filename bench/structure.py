"""Count what makes the structure easy or hard to read: ``python -m bench.structure [CHECKOUT]``.

Prints one Markdown row per figure. Works on any checkout, so that two of them can be compared.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

RINGS = ("bot", "runners")
COMPILERS = re.compile(r"tvm|iree", re.I)
RIDDLES = re.compile(r"\b(?:what|who|whom|nobody|nothing|whatever|whoever)\b", re.I)


@dataclass(frozen=True, slots=True)
class Module:
    """One source file. ``imports`` are the project's modules that it imports anywhere in its text."""

    name: str
    folder: str
    tree: ast.Module
    lines: int
    imports: frozenset[str]


def read_modules(root: Path) -> dict[str, Module]:
    paths = [path for ring in RINGS for path in sorted((root / ring).rglob("*.py"))]
    names = {_name(path, root) for path in paths}
    return {module.name: module for path in paths if (module := _read(path, root, names))}


def _name(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _read(path: Path, root: Path, names: set[str]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    code = sum(1 for line in text.splitlines() if line.strip())
    own = _name(path, root)
    return Module(
        name=own,
        folder=path.parent.relative_to(root).as_posix(),
        tree=tree,
        lines=code,
        imports=frozenset(_imports(tree, names, own)),
    )


def _imports(tree: ast.AST, names: set[str], own: str) -> Iterator[str]:
    siblings = {name.rpartition(".")[2]: name for name in names if name.rpartition(".")[0] == own.rpartition(".")[0]}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in names:
                    yield alias.name
                # The guest's modules used to import each other by their last name. Elsewhere `import select` is the
                # standard library's module, even in a folder with a `select.py`.
                elif alias.name in siblings and "guest" in own:
                    yield siblings[alias.name]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in names or node.module in names:
                    yield inner if inner in names else node.module
                elif node.module in siblings and "guest" in own:
                    yield siblings[node.module]


def circles(modules: dict[str, Module]) -> int:
    """Circles of imports between modules, found one after another."""
    graph = {name: set(module.imports) - {name} for name, module in modules.items()}
    count = 0
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            count += 1
            circle = error.args[1]
            graph[circle[1]].discard(circle[0])
            graph[circle[0]].discard(circle[1])
        else:
            return count


def folder_circles(modules: dict[str, Module]) -> int:
    """Pairs of folders that import each other."""
    arrows = {
        (module.folder, modules[other].folder)
        for module in modules.values()
        for other in module.imports
        if modules[other].folder != module.folder
        # A folder and its own subfolder are one place.
        and not modules[other].folder.startswith(f"{module.folder}/")
        and not module.folder.startswith(f"{modules[other].folder}/")
    }
    return sum((target, source) in arrows for source, target in arrows) // 2


def functions(modules: dict[str, Module]) -> Iterator[ast.FunctionDef]:
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                yield node


def docstrings(modules: dict[str, Module]) -> Iterator[str]:
    """Sentences of docstrings, those of attributes included."""
    for module in modules.values():
        for node in ast.walk(module.tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield from filter(None, map(str.strip, re.split(r"(?<=[.:;])\s+", str(node.value.value))))


def compiler_literals(trees: Mapping[str, ast.Module]) -> Counter[str]:
    """String literals with a compiler's name outside the compilers' own folders; docstrings do not count."""
    found: Counter[str] = Counter()
    for name, tree in trees.items():
        if re.search(r"tvm|iree", name):
            continue
        nodes = list(ast.walk(tree))
        prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                found[name] += bool(COMPILERS.search(node.value))
    return +found


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    modules = read_modules(root)
    sizes = Counter(module.folder for module in modules.values() if not module.name.endswith("__init__"))
    importers: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for other in module.imports:
            importers[other].add(module.name)
    names = [node.name.strip("_") for node in functions(modules)]
    sentences = list(docstrings(modules))
    riddles = sum(bool(RIDDLES.search(sentence)) for sentence in sentences)
    literals = compiler_literals({name: module.tree for name, module in modules.items()})
    crossing = sum(
        1 for module in modules.values() for other in module.imports
        if module.name.startswith("bot") and other.startswith("runners")
    )  # fmt: skip
    largest, count = sizes.most_common(1)[0]
    rows = {
        "modules": len(modules),
        "folders": len(sizes),
        f"modules in the largest folder ({largest})": count,
        "circles of modules": circles(modules),
        "pairs of folders that import each other": folder_circles(modules),
        "imports bot → runners": crossing,
        "modules with one importer": sum(len(found) == 1 for found in importers.values()),
        "functions": len(names),
        "one-word function names": sum("_" not in name for name in names),
        "docstring sentences": len(sentences),
        "… with what, who, nobody, nothing, whatever": riddles,
        "string literals with a compiler's name outside its folders": literals.total(),
        "lines of product code (without blank lines)": sum(module.lines for module in modules.values()),
    }
    for name, value in rows.items():
        sys.stdout.write(f"| {name} | {value:,} |\n")
    if "--literals" in sys.argv:
        for name, number in literals.most_common():
            sys.stdout.write(f"{number:4} {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
