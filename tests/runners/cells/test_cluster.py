"""A cell on a worker of a cluster: where it may be sent, and what its answer may be. Dask itself is replaced."""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import msgspec
import pytest

from runners.cells.cluster import check_address, main, run_on_cluster
from runners.core.errors import InfraError, UserError
from runners.core.protocol import CellResult, Claim, JobCell, JobPlan, Plan, Testcase, TestcaseKind, digest_of

CASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "1"}, steps=(("python", "a.py"),))
PLAN = Plan(testcase=CASE, claim=Claim(), device="llvm", order=("0.27.0",), first=("0.27.0",))
CELL = JobCell(id="any", plan=PLAN, testcase_sha256=digest_of(CASE))
DATA = msgspec.json.encode(JobPlan(cells=(CELL,), case=msgspec.Raw(b"{}")))
DIGEST = sha256(DATA).hexdigest()
RESULT = msgspec.json.encode(CellResult(cell="any", plan_sha256=DIGEST))


@pytest.mark.parametrize(
    "address", ["tls://10.0.0.7:8786", "tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:2"]
)
def test_tls_or_loopback_is_accepted(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize(
    "address",
    ["tcp://10.0.0.7:8786", "tcp://example.org:1", "tcp://127.0.0.1.example.org:1", "127.0.0.1:8786", "tls://x"],
)
def test_a_network_without_tls_is_refused(address: str) -> None:
    with pytest.raises(UserError):
        check_address(address)


class Client:
    """Runs nothing: answers with the bytes of the test."""

    answer: Callable[[], object] = lambda: RESULT
    resources: object = None

    def __init__(self, address: str, **_: Any) -> None:
        self.address = address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., bytes], *arguments: object, resources: object, **_: object) -> Self:
        assert (work.__module__, arguments) == ("runners.cells.cluster", (DATA, DIGEST, "any"))
        type(self).resources = resources
        return self

    def result(self, timeout: float) -> object:
        return type(self).answer()


@pytest.fixture(autouse=True)
def dask(monkeypatch: pytest.MonkeyPatch) -> type[Client]:
    module = ModuleType("distributed")
    client = type("OneClient", (Client,), {})
    module.Client = client  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "distributed", module)
    return client


def fail() -> object:
    raise TimeoutError("no worker")


def test_answer_is_a_result() -> None:
    assert run_on_cluster("tcp://127.0.0.1:1", DATA, DIGEST, CELL) == msgspec.json.decode(RESULT, type=CellResult)


@pytest.mark.parametrize("answer", [lambda: b"{}", lambda: "text", lambda: b"x" * 9_000_000, fail])
def test_any_other_answer_is_our_failure(dask: type[Client], answer: Callable[[], object]) -> None:
    dask.answer = staticmethod(answer)
    with pytest.raises(InfraError):
        run_on_cluster("tcp://127.0.0.1:1", DATA, DIGEST, CELL)


def test_a_gpu_cell_asks_for_a_worker_with_one(dask: type[Client]) -> None:
    plan = msgspec.structs.replace(PLAN, device="cuda")
    run_on_cluster("tcp://127.0.0.1:1", DATA, DIGEST, msgspec.structs.replace(CELL, plan=plan))
    assert dask.resources == {"GPU": 1}


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match=r"reprobot\[cluster\]"):
        run_on_cluster("tcp://127.0.0.1:1", DATA, DIGEST, CELL)


def test_child_writes_the_result_of_its_own_plan_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dask: type[Client]
) -> None:
    (tmp_path / "plan.json").write_bytes(DATA)
    words = [str(tmp_path / "plan.json"), DIGEST, "any", str(tmp_path / "results"), "tcp://[::1]:1"]
    assert main(words) == 0
    assert (tmp_path / "results/any.json").read_bytes() == RESULT
    dask.answer = staticmethod(lambda: msgspec.json.encode(CellResult(cell="any", plan_sha256="0" * 64)))
    assert main(words) == 75
