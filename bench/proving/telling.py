"""Tell a story in one of many ways, reproducibly, and reduce a telling to the choices that matter.

A telling is a value: one option for each axis (`AXES`). The first option of an axis is the plain one. `draw` chooses
by a seed, `render` writes the issue's Markdown, `shrink` sets axes back to the plain option as long as the telling
still shows what the caller looks for.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bench.proving import words
from bench.proving.story import Story

AXES: Mapping[str, tuple[str, ...]] = {
    "order": ("code-first", "failure-first", "expected-first", "environment-first"),
    "headings": ("markdown", "bold", "none", "renamed", "form"),
    "code": ("fence", "bare-fence", "other-label", "tilde", "indented", "list-item", "details", "quoted", "session"),
    "comment": ("none", "trailing-value", "leading-remark"),
    "failure": (
        *("fence", "bare-fence", "details", "quoted", "after-command"),
        *("last-line", "shortened", "frames-only", "sentence", "inline-code"),
    ),
    "values": ("block", "inline-code", "sentence", "rounded", "elided", "trailing-comment"),
    "expected": ("after", "before", "sentence", "absent"),
    "version": ("exact", "bullet", "v", "date", "month", "main", "nightly", "absent"),
    "device": ("absent", "prose"),
    "accused": ("absent", "sentence"),
    "title": ("plain", "tagged", "with-failure", "vague"),
    "decoy": (
        *("none", "pip-list", "environment-dump", "ir-dump", "library-source"),
        *("working-variant", "unrelated-snippet"),
    ),
    "decoy-place": ("end", "start", "middle"),
    "typography": ("plain", "typos", "curly-quotes", "dashes"),
    "chat": ("none", "greeting", "closing", "both"),
}  # fmt: skip
"""Axis → options, the plain one first."""


@dataclass(frozen=True, slots=True)
class Telling:
    """One option for each axis, and the seed that chooses among equal phrases."""

    seed: int
    options: tuple[tuple[str, str], ...]

    def __getitem__(self, axis: str) -> str:
        return dict(self.options)[axis]

    def with_option(self, axis: str, option: str) -> Telling:
        return Telling(self.seed, tuple((name, option if name == axis else old) for name, old in self.options))

    @property
    def unusual(self) -> dict[str, str]:
        """The options that are not the plain ones."""
        return {axis: option for axis, option in self.options if option != AXES[axis][0]}


def plain(seed: int = 0) -> Telling:
    return Telling(seed, tuple((axis, options[0]) for axis, options in AXES.items()))


def draw(seed: int) -> Telling:
    """A telling in which about half of the axes are unusual."""
    dice = random.Random(seed)
    chosen = ((axis, dice.choice(options) if dice.random() < 0.55 else options[0]) for axis, options in AXES.items())
    return Telling(seed, tuple(chosen))


def shrink(telling: Telling, still_shows: Callable[[Telling], bool]) -> Telling:
    """The telling with as few unusual options as still show the same: one axis after another is set back."""
    for axis in telling.unusual:
        candidate = telling.with_option(axis, AXES[axis][0])
        if still_shows(candidate):
            telling = candidate
    return telling


# ---------------------------------------------------------------------------------------------- rendering


def render(story: Story, telling: Telling) -> str:
    """The issue as Markdown: front matter with the date, title, body."""
    return _Teller(story, telling).issue()


class _Teller:
    def __init__(self, story: Story, telling: Telling) -> None:
        self.story = story
        self.telling = telling
        self.dice = random.Random(f"{story.name} {telling.seed}")

    def pick(self, options: tuple[str, ...], **values: object) -> str:
        return self.dice.choice(options).format(**values)

    def issue(self) -> str:
        story = self.story
        created = f"---\ncreated: {story.created.isoformat()}\n---\n\n" if story.created else ""
        return f"{created}# {self.title()}\n\n{self.body()}\n"

    # ---------------------------------------------------------------------------------- title

    def title(self) -> str:
        story, base = self.story, self.story.title
        match self.telling["title"]:
            case "plain":
                return base
            case "tagged":
                return f"[Bug] {base}"
            case "with-failure":
                last = _last_line(story.failure)
                return f"{base}: {last[:90]}" if last else base
            case _:
                return {"crash": "Crash", "hang": "Never ends"}.get(story.claim, "[Bug] Something is off here")

    # ---------------------------------------------------------------------------------- body

    def body(self) -> str:
        parts = self.parts()
        decoy = self.decoy()
        if decoy:
            place = {"start": 0, "middle": len(parts) // 2}.get(self.telling["decoy-place"], len(parts))
            parts.insert(place, decoy)
        chat = self.telling["chat"]
        opening = [self.pick(words.GREETINGS[1:])] if chat in ("greeting", "both") else []
        ending = [self.pick(words.CLOSINGS[1:])] if chat in ("closing", "both") else []
        return "\n\n".join(part for part in (*opening, *parts, *ending) if part.strip())

    def parts(self) -> list[str]:
        code, failure, environment = self.code(), self.observed(), self.environment()
        expected = self.expected()
        observed = [expected, failure] if self.telling["expected"] == "before" else [failure, expected]
        match self.telling["order"]:
            case "failure-first":
                return [*observed, code, environment]
            case "expected-first":
                return [expected, code, failure, environment]
            case "environment-first":
                return [environment, code, *observed]
            case _:
                return [code, *observed, environment]

    def heading(self, plain_heading: str, others: tuple[str, ...]) -> str:
        match self.telling["headings"]:
            case "markdown":
                return f"### {plain_heading}\n\n"
            case "bold":
                return f"**{plain_heading}**\n\n"
            case "renamed":
                return f"## {self.pick(others)}\n\n"
            case "form":
                return f"### {self.pick(others)} *\n\n"
            case _:
                return ""

    # ---------------------------------------------------------------------------------- code

    def code(self) -> str:
        title = self.heading("Steps to reproduce", words.CODE_HEADINGS)
        introduction = self.prose(self.pick(words.CODE_INTRODUCTIONS))
        blocks = [self.python()] if self.story.script else [*self.files(), self.commands()]
        return title + "\n\n".join(part for part in (introduction, *blocks) if part)

    def python(self) -> str:
        name = self.story.script
        assert name is not None
        text = self.story.files[name].rstrip("\n")
        match self.telling["comment"]:
            case "leading-remark":
                text = f"# needs nothing beyond {_project(self.story)} and numpy\n{text}"
            case "trailing-value" if (last := _last_print(text)) is not None and self.wrong_values():
                lines = text.split("\n")
                lines[last] += f"  # gives {self.wrong_values()[0][:60]}"
                text = "\n".join(lines)
        if self.telling["code"] == "session" and _is_session(text):
            return _fenced("\n".join(_prompted(text)), "python")
        return self.block(text, "python", ("py", "Python", "python3"))

    def files(self) -> Iterator[str]:
        for name, text in self.story.files.items():
            label = {"mlir": "mlir", "py": "python"}.get(name.rpartition(".")[2], "")
            yield f"`{name}`:\n\n{self.block(text.rstrip(chr(10)), label, ('', 'llvm', 'txt'))}"

    def commands(self) -> str:
        lines = [" ".join(step) for step in self.story.steps]
        if self.telling["code"] == "session":
            return _fenced("\n".join(f"$ {line}" for line in lines), "console")
        if self.telling["code"] == "list-item":
            return "\n".join(f"{number}. `{line}`" for number, line in enumerate(lines, 1))
        return self.block("\n".join(lines), "bash", ("sh", "shell", "console"))

    def block(self, text: str, label: str, others: tuple[str, ...]) -> str:
        match self.telling["code"]:
            case "bare-fence":
                return _fenced(text, "")
            case "other-label":
                return _fenced(text, self.pick(others))
            case "tilde":
                return f"~~~{label}\n{text}\n~~~"
            case "indented":
                return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))
            case "list-item":
                return "1. run this\n\n" + "\n".join(
                    f"   {line}".rstrip() for line in _fenced(text, label).split("\n")
                )
            case "details":
                return f"<details>\n<summary>code</summary>\n\n{_fenced(text, label)}\n\n</details>"
            case "quoted":
                return "\n".join(f"> {line}".rstrip() for line in _fenced(text, label).split("\n"))
            case _:
                return _fenced(text, label)

    # ---------------------------------------------------------------------------------- what happens

    def observed(self) -> str:
        title = self.heading("Actual behavior", words.OBSERVED_HEADINGS)
        complaint = self.prose(self.pick(words.COMPLAINTS[self.story.claim]))
        accused = ""
        if self.telling["accused"] == "sentence" and self.story.accused:
            accused = self.prose(self.pick(words.ACCUSATIONS, accused=self.story.accused[0]))
        shown = self.wrong_shown() if self.wrong_values() and not self.story.failure else self.failure_shown()
        return title + "\n\n".join(part for part in (complaint, shown, accused) if part)

    def failure_shown(self) -> str:
        text = self.story.failure.rstrip("\n")
        if not text:
            return ""
        introduction = self.prose(self.pick(words.FAILURE_INTRODUCTIONS))
        last = _last_line(text)
        match self.telling["failure"]:
            case "bare-fence":
                block = _fenced(text, "")
            case "details":
                block = f"<details>\n\n{_fenced(text, '')}\n\n</details>"
            case "quoted":
                block = "\n".join(f"> {line}".rstrip() for line in _fenced(text, "").split("\n"))
            case "after-command":
                command = " ".join(self.story.steps[-1])
                block = _fenced(f"$ {command}\n{text}", "console")
            case "last-line":
                block = _fenced(last, "")
            case "shortened" if len(text.split("\n")) > 8:
                lines = text.split("\n")
                block = _fenced("\n".join([*lines[:3], "...", *lines[-4:]]), "")
            case "frames-only" if "\n  File " in text:
                block = _fenced(
                    "\n".join(line for line in text.split("\n") if line.startswith("  ")) + f"\n{last}", ""
                )
            case "sentence":
                return self.prose("The last line is") + f" {last}"
            case "inline-code":
                return self.prose("The message is") + f" `{last.replace('`', chr(39))}`."
            case _:
                block = _fenced(text, "")
        return f"{introduction}\n\n{block}" if introduction else block

    def wrong_values(self) -> list[str]:
        return [line for line in self.story.wrong.split("\n") if line.strip()]

    def right_values(self) -> list[str]:
        return [line for line in self.story.right.split("\n") if line.strip()]

    def wrong_shown(self) -> str:
        lines = self.wrong_values()
        introduction = self.prose(self.pick(words.WRONG_INTRODUCTIONS))
        match self.telling["values"]:
            case "inline-code" if len(lines) <= 2:
                return f"{introduction} " + " and ".join(f"`{line}`" for line in lines)
            case "sentence" if len(lines) == 1:
                right = self.right_values()
                wanted = f" where {_value(right[0])} is right" if len(right) == 1 else ""
                return self.prose("The result is") + f" {_value(lines[0])}" + self.prose(f"{wanted}.")
            case "rounded":
                lines = [_rounded(line) for line in lines]
            case "elided" if len(lines) > 3:
                lines = [*lines[:2], "...", lines[-1]]
            case "trailing-comment" if self.telling["comment"] == "trailing-value":
                return self.prose("See the comment in the code.")
        block = _fenced("\n".join(lines), "")
        return f"{introduction}\n\n{block}" if introduction else block

    def expected(self) -> str:
        if self.telling["expected"] == "absent":
            return ""
        title = self.heading("Expected behavior", words.EXPECTED_HEADINGS)
        right = self.right_values()
        if self.story.failure or not right:
            return title + self.prose(self.pick(words.RIGHT_FOR_FAILURES)) if self.story.failure else ""
        if self.telling["expected"] == "sentence" and len(right) == 1:
            return title + self.prose("Expected") + f" {_value(right[0])}" + self.prose(" here.")
        if self.telling["values"] == "rounded":
            right = [_rounded(line) for line in right]
        introduction = self.pick(words.RIGHT_INTRODUCTIONS[1:] if not title else words.RIGHT_INTRODUCTIONS)
        block = _fenced("\n".join(right), "")
        return title + (f"{self.prose(introduction)}\n\n{block}" if introduction else block)

    # ---------------------------------------------------------------------------------- environment and decoys

    def environment(self) -> str:
        story, form = self.story, self.telling["version"]
        if not story.version:
            form = "absent"
        if form in ("date", "month") and story.created is None:
            form = "exact"
        day = story.created - timedelta(days=1) if story.created else None
        values: dict[str, Any] = {"package": _package(story), "project": _project(story), "version": story.version}
        if day is not None:
            values |= {"date": day.isoformat(), "month": f"{day:%B %Y}"}
        version = self.pick(words.VERSIONS[form], **values)
        device = self.pick(words.DEVICES[self.telling["device"]])
        text = "\n\n".join(part for part in (version, device) if part)
        return self.heading("Environment", words.ENVIRONMENT_HEADINGS) + text if text else ""

    def decoy(self) -> str:
        story = self.story
        match self.telling["decoy"]:
            case "pip-list":
                return f"<details><summary>pip list</summary>\n\n{_fenced(_PIP_LIST, '')}\n\n</details>"
            case "environment-dump":
                return _fenced(_MACHINE, "")
            case "ir-dump":
                return f"The IR after a few passes, in case that helps:\n\n{_fenced(_IR[story.toolchain], '')}"
            case "library-source":
                return f"The check is in the sources:\n\n{_fenced(_SOURCE, 'python')}"
            case "working-variant" if story.claim != "hang":
                return f"{self.pick(words.WORKING_INTRODUCTIONS)}\n\n{_fenced(_WORKING[story.toolchain], 'python')}"
            case "unrelated-snippet":
                return f"I normally use a wrapper of mine around this:\n\n{_fenced(_WRAPPER, 'python')}"
            case _:
                return ""

    # ---------------------------------------------------------------------------------- prose

    def prose(self, text: str) -> str:
        match self.telling["typography"]:
            case "typos":
                return re.sub(r"\b[a-z]+\b", lambda m: words.TYPOS.get(m[0], m[0]), text)
            case "curly-quotes":
                return text.replace("'", "’")
            case "dashes":
                return text.replace(" - ", " — ").replace(", ", " – ", 1) if "`" not in text else text
            case _:
                return text


def _fenced(text: str, label: str) -> str:
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return f"{ticks}{label}\n{text}\n{ticks}"


def _last_line(text: str) -> str:
    """The last line that says something: nobody quotes the caret below a diagnostic alone."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return next((line for line in reversed(lines) if len(re.findall(r"[A-Za-z]{2,}", line)) > 2), (lines or [""])[-1])


def _value(line: str) -> str:
    """The value of a printed line, without its label."""
    return line.rpartition(":")[2].strip() or line.strip()


def _rounded(line: str) -> str:
    return re.sub(r"-?\d+\.\d{4,}", lambda m: f"{float(m[0]):.4g}", line)


def _last_print(text: str) -> int | None:
    lines = text.split("\n")
    found = [at for at, line in enumerate(lines) if line.startswith("print(") and line.endswith(")")]
    return found[-1] if found else None


def _is_session(text: str) -> bool:
    return "\nclass " not in text and "@" not in text and '"""' not in text


def _prompted(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield f"... {line}" if line.startswith((" ", ")", "]", "}")) or not line else f">>> {line}"


def _package(story: Story) -> str:
    return {"tvm": "apache-tvm", "iree": "iree-base-compiler"}.get(story.toolchain, story.toolchain)


def _project(story: Story) -> str:
    return {"tvm": "TVM", "iree": "IREE"}.get(story.toolchain, story.toolchain)


_PIP_LIST = "attrs 25.4.0\ncloudpickle 3.1.2\nnumpy 2.3.5\npackaging 25.0\npip 25.3\nscipy 1.16.3"
_MACHINE = "OS: Ubuntu 22.04.5 LTS\nGCC version: 11.4.0\nCMake version: 3.31.1\nPython: 3.11.9\nCPU: 16 cores"
_IR = {
    "tvm": """\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), dtype="float32")):
        gv = R.add(x, x)
        return gv""",
    "iree": """\
flow.executable private @dispatch_0 {
  flow.executable.export public @dispatch_0_elementwise_4 workgroups() {
  }
}""",
}
_WORKING = {
    "tvm": "import tvm\n\nprint(tvm.__version__)",
    "iree": "import iree.compiler\n\nprint(iree.compiler.version.VERSION)",
}
_SOURCE = (
    "    def visit(self, node):\n        for field in node.fields:\n            if field is None:\n"
    '                raise ValueError("field must be set")\n        return super().visit(node)'
)
_WRAPPER = (
    "def load(path):\n    with open(path) as file:\n        return parse(file.read())\n\n\nmodule = load(config.path)"
)
