"""A workflow of ours, played on this machine: its jobs in order, the composite action's own ``run:`` steps in bash.

Only as much of GitHub Actions as our files use: called workflows, ``needs``, a matrix of cells, artifacts as folders.
Each job has a temporary folder of its own, as it would have a machine of its own; what the runner does by JavaScript
actions (checkout, artifacts) is done here by copying.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.bot.forge import objects
from tests.bot.forge.fake import REPOSITORY
from tests.bot.forge.objects import WEB
from tests.flow.expressions import evaluate

ROOT = Path(__file__).parents[2]
LEAK = "leaked-if-anybody-sees-this"
_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


def copy_project(target: Path) -> None:
    """Copy the working tree without history, environments and caches."""
    drop = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "dist", "build")
    shutil.copytree(ROOT, target, ignore=drop, symlinks=True)


def run_git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True, timeout=60).stdout.strip()


@dataclass
class Job:
    """What a job left."""

    outputs: dict[str, str] = field(default_factory=dict)
    result: str = "success"
    log: str = ""
    summary: str = ""


@dataclass
class Play:
    """One run of a workflow. ``variables`` are those of the forge; ``event`` is what caused it."""

    workflow: Path
    folder: Path
    event: str
    payload: bytes
    variables: Mapping[str, str]
    inputs: Mapping[str, str] = field(default_factory=dict)
    run_id: int = 1
    jobs: dict[str, Job] = field(default_factory=dict)
    released: Path | None = None
    """A repository of ours with tags. The called workflow and the action come from the commit that the workflow pins.
    None: from the working tree."""
    pinned: str = ""
    """The tag or commit that the workflow pins."""
    machine: Mapping[str, str] = field(default_factory=lambda: {"RUNNER_ENVIRONMENT": "github-hosted"})
    listed_jobs: list[dict[str, Any]] = field(default_factory=list)
    listed_artifacts: list[dict[str, Any]] = field(default_factory=list)
    """What the forge lists of this run."""
    said: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Outputs of the steps that only GitHub can run, by id."""
    earlier: Mapping[str, Path] = field(default_factory=dict)
    """Artifacts of earlier runs, by number."""

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    def run(self) -> dict[str, Job]:
        """Play all jobs in the order of the file, which is the order of their needs."""
        self.artifacts.mkdir(parents=True, exist_ok=True)
        for name, job in yaml.safe_load(self.workflow.read_text(encoding="utf-8"))["jobs"].items():
            self._job(name, job)
        return self.jobs

    def _job(self, name: str, job: Mapping[str, Any]) -> None:
        if not self._true(job.get("if", True), {}):
            self.jobs[name] = Job(result="skipped")
            return
        if "uses" in job:
            self._called(job)
            return
        matrix = job.get("strategy", {}).get("matrix", {})
        cells = self._value(matrix["cell"], {}) if matrix else [None]
        hosted = isinstance(job["runs-on"], str)
        environment = "github-hosted" if hosted else "self-hosted"
        self.machine = {"RUNNER_ENVIRONMENT": environment} | ({} if hosted else {"REPROBOT_EPHEMERAL": "1"})
        for cell in cells:
            self._machine(name, job, {"matrix": {"cell": cell}})

    def _called(self, job: Mapping[str, Any]) -> None:
        """A called workflow of ours: its jobs, with the inputs given to it or their defaults."""
        called_file, _, self.pinned = job["uses"].partition("@")
        path = self.checkout / ".github/workflows" / called_file.rpartition("/")[2]
        called = yaml.safe_load(path.read_text(encoding="utf-8"))
        known = called[True]["workflow_call"]["inputs"]  # YAML 1.1 reads `on` as true
        given = {**job.get("with", {}), **self.inputs}
        assert set(given) <= set(known)
        self.inputs = {name: given.get(name, one["default"]) for name, one in known.items()}
        for inner, one in called["jobs"].items():
            self._job(inner, one)

    def _machine(self, name: str, job: Mapping[str, Any], context: dict[str, Any]) -> None:
        """One job on one machine: its steps, until one fails."""
        done = self.jobs.setdefault(name, Job())
        temp = self.folder / f"{name}-{context['matrix']['cell'] or 'only'}"
        work = temp / "work"
        work.mkdir(parents=True)
        context |= {"runner": {"temp": str(temp)}, "steps": {}, "inputs": dict(self.inputs), "work": work}
        context["github"] = {"token": self.variables["GITHUB_TOKEN"] if job["permissions"] else "no-permission"}
        steps: list[dict[str, Any]] = []
        shown = str(self._value(str(job.get("name", name)), context))
        self.listed_jobs.append(objects.workflow_job(WEB, REPOSITORY, self.run_id, shown, datetime.now(UTC), steps))
        for number, step in enumerate(job["steps"], 1):
            if done.result == "success" and self._true(step.get("if", True), context):
                begin = datetime.now(UTC)
                code = self._step(step, context, done, temp)
                done.result = "success" if code == 0 else "failure"
                title = step.get("name", f"Run {step.get('uses', 'a command')}")
                steps.append(objects.workflow_step(title, number, done.result, begin, datetime.now(UTC)))
        for output, value in job.get("outputs", {}).items():
            done.outputs[output] = str(self._value(value, context))

    def _step(self, step: Mapping[str, Any], context: dict[str, Any], done: Job, temp: Path) -> int:
        uses = step.get("uses", "").partition("@")[0]
        given = {key: str(self._value(str(value), context)) for key, value in step.get("with", {}).items()}
        match uses:
            case "":
                # The check of the workflow's own commit, and the list of its runs, which only GitHub knows.
                context["steps"][step.get("id", "")] = {"outputs": dict(self.said.get(step.get("id", ""), {}))}
                return 0
            case "actions/checkout":
                return 0
            case "actions/upload-artifact":
                return self._upload(given, context["work"])
            case "actions/download-artifact":
                return self._download(given, context["work"])
            case _:
                return self._action(given, step.get("id", ""), context, done, temp)

    def _upload(self, given: Mapping[str, str], work: Path) -> int:
        source = work / given["path"]
        if source.exists():
            target = self.artifacts / given["name"]
            if target.exists():
                return 1  # a name can be taken once in a run
            if source.is_dir():
                shutil.copytree(source, target)
            else:
                target.mkdir()
                shutil.copy(source, target)
            self.listed_artifacts.append(objects.artifact(WEB, REPOSITORY, given["name"], datetime.now(UTC)))
        return 0

    def _download(self, given: Mapping[str, str], work: Path) -> int:
        place = self.earlier[given["run-id"]] if "run-id" in given else self.artifacts
        found = [place / given["name"]] if "name" in given else sorted(place.glob(given["pattern"]))
        for artifact in found:
            inner = work / given.get("path", "") / ("" if "name" in given else artifact.name)
            shutil.copytree(artifact, inner, dirs_exist_ok=True)
        return 0

    # ------------------------------------------------------------------------------------------ the action

    def _action(self, given: Mapping[str, str], id: str, context: dict[str, Any], done: Job, temp: Path) -> int:
        """Every ``run:`` step of action.yml whose condition holds, with files for outputs and summary of its own."""
        action = yaml.safe_load((self.checkout / "action.yml").read_text(encoding="utf-8"))
        unknown = set(given) - set(action["inputs"])
        assert not unknown, f"the action has no inputs {unknown}"
        inputs = {name: given.get(name, one.get("default", "")) for name, one in action["inputs"].items()}
        inner: dict[str, Any] = {"inputs": inputs, "steps": {}}
        for i, step in enumerate(action["runs"]["steps"]):
            if not self._true(step.get("if", True), inner):
                continue
            files = {kind: temp / f"{i}-{kind}" for kind in ("output", "summary")}
            for file in files.values():
                file.touch()
            code = self._bash(step, inner, files, done, context["work"])
            lines = files["output"].read_text(encoding="utf-8").splitlines()
            inner["steps"][step.get("id", str(i))] = {"outputs": dict(line.split("=", 1) for line in lines)}
            done.summary += files["summary"].read_text(encoding="utf-8")
            if code != 0:
                return code
        context["steps"][id] = {
            "outputs": {name: str(self._value(one["value"], inner)) for name, one in action["outputs"].items()}
        }
        return 0

    @property
    def checkout(self) -> Path:
        """The project as a runner would have it: without the tests' own environment."""
        place = self.folder.parent / "checkout"
        if place.exists():
            return place
        if self.released is None:
            copy_project(place)
        else:
            run_git("clone", "--quiet", "--no-local", str(self.released), str(place))
            run_git("-C", str(place), "checkout", "--quiet", "--detach", self.pinned)
        return place

    def _bash(
        self, step: Mapping[str, Any], inner: dict[str, Any], files: Mapping[str, Path], done: Job, work: Path
    ) -> int:
        """As the runner does it: ``bash --noprofile --norc -eo pipefail FILE``, in the job's folder."""
        event, script = self.folder / "event.json", files["output"].with_suffix(".sh")
        event.write_bytes(self.payload)
        script.write_text(step["run"], encoding="utf-8")
        passed = [
            *("PATH", "HOME", "LANG", "REPROBOT_CACHE", "REPROBOT_CONFIG"),
            *("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_CONFIG_FILE"),
        ]
        forge = {name: value for name, value in self.variables.items() if "TOKEN" not in name}
        variables = {
            **{name: os.environ[name] for name in passed if name in os.environ},
            **forge,
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": self.event,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": str(self.run_id),
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_ACTION_PATH": str(self.checkout),
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
            **self.machine,
            "ACTIONS_RUNTIME_TOKEN": LEAK,
            **{name: str(self._value(str(value), inner)) for name, value in step.get("env", {}).items()},
        }
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=work, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=540,
        )  # fmt: skip
        done.log += ended.stdout.decode(errors="replace")
        return ended.returncode

    # ------------------------------------------------------------------------------------------ expressions

    def _value(self, text: Any, context: Mapping[str, Any]) -> Any:
        """``text`` with its expressions replaced; one expression alone keeps its type."""
        whole = _EXPRESSION.fullmatch(str(text))
        if whole is not None:
            return self._look(whole[1], context)
        return _EXPRESSION.sub(lambda found: str(self._look(found[1], context)), str(text))

    def _look(self, expression: str, context: Mapping[str, Any]) -> Any:
        needs = {name: {"outputs": job.outputs, "result": job.result} for name, job in self.jobs.items()}
        github = {"event_name": self.event, "event": json.loads(self.payload), **context.get("github", {})}
        return evaluate(expression, {**context, "needs": needs, "github": github})

    def _true(self, condition: Any, context: Mapping[str, Any]) -> bool:
        """The condition of a job or a step, with or without ``${{ }}``."""
        whole = _EXPRESSION.fullmatch(str(condition))
        return condition is True or bool(self._look(whole[1] if whole else str(condition), context))
