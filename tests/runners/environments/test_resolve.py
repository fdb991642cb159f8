"""Resolutions as of a release's day. The index is the tests' own, with a date for each wheel."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from runners.environments import resolve as resolve_module, store as store_module
from runners.environments.interpreters import choose_interpreter
from runners.environments.resolve import Resolver, Unresolvable
from runners.environments.store import Store
from runners.environments.uv import Uv
from tests.runners.environments.test_store import RELEASE, build_wheel

OLD, YOUNG = "2024-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
RELEASED = replace(RELEASE, source="index", released=date(2024, 4, 1), distributions=("compiler==1.0",))


@contextmanager
def serve_wheels(folder: Path) -> Iterator[str]:
    """Serve the wheels of ``folder/old`` and ``folder/young`` as an index that dates them (PEP 691, PEP 700)."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/").split("/")[-1]
            if self.path.endswith(".whl"):
                body, kind = next(folder.rglob(name)).read_bytes(), "application/zip"
            else:
                files = [describe(path) for path in sorted(folder.rglob("*.whl")) if path.name.startswith(f"{name}-")]
                page = {"meta": {"api-version": "1.1"}, "name": name, "files": files}
                body, kind = json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *words: object) -> None: ...

    def describe(path: Path) -> dict[str, object]:
        data = path.read_bytes()
        return {
            "filename": path.name,
            "url": f"/files/{path.name}",
            "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
            "size": len(data),
            "upload-time": OLD if path.parent.name == "old" else YOUNG,
        }

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def resolve(tmp_path: Path, *extra: str) -> set[str]:
    """Return the locked packages, such as ``compiler==1.0``."""
    with serve_wheels(tmp_path / "wheels") as url:
        uv = Uv(cache=tmp_path / "uv", options=("--index-url", url))
        resolver = Resolver(folder=tmp_path / "resolutions", uv=uv, say=lambda _: None)
        lock = resolver.resolve(RELEASED, extra, choose_interpreter(RELEASED.pythons))
    return set(re.findall(r"^\S+==\S+", lock, re.MULTILINE))


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A compiler of 2024 with a dependency, and a framework of 2026 that needs a helper of 2026."""
    folder = tmp_path / "wheels"
    for name in ("old", "young"):
        (folder / name).mkdir(parents=True)
    build_wheel(folder / "old", "compiler", "1.0", {"compiler.py": ""}, requires="arrays")
    for name, version in (("arrays", "1.0"), ("helper", "1.0"), ("framework", "1.0")):
        build_wheel(folder / "old", name, version, {f"{name}.py": ""})
    build_wheel(folder / "young", "arrays", "2.0", {"arrays.py": ""})
    build_wheel(folder / "young", "helper", "2.0", {"helper.py": ""})
    build_wheel(folder / "young", "framework", "2.0", {"framework.py": ""}, requires="helper>=2")
    return folder


@pytest.mark.thorough
def test_packages_are_as_of_the_release(tmp_path: Path, wheels: Path) -> None:
    assert resolve(tmp_path, "framework") == {"compiler==1.0", "arrays==1.0", "framework==1.0"}


@pytest.mark.thorough
def test_a_young_package_that_the_testcase_pins_brings_its_young_dependencies(tmp_path: Path, wheels: Path) -> None:
    """The release's own dependencies stay as of its day: younger ones break the release."""
    assert resolve(tmp_path, "framework==2.0") == {"compiler==1.0", "arrays==1.0", "framework==2.0", "helper==2.0"}


@pytest.mark.thorough
def test_a_young_package_that_needs_a_younger_dependency_of_the_release_does_not_fit(
    tmp_path: Path, wheels: Path
) -> None:
    build_wheel(wheels / "young", "framework", "3.0", {"framework.py": ""}, requires="arrays>=2")
    with pytest.raises(Unresolvable, match=r"framework==3\.0 as of 2024-04-\d\d does not go with python 3\.11"):
        resolve(tmp_path, "framework==3.0")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("day", "found"), [(date(2026, 6, 1), {"arrays": ("1.0", "2.0")}), (date(2024, 5, 1), {}), (date(2023, 1, 1), {})]
)
def test_the_packages_of_a_later_day_are_found(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch, day: date, found: dict[str, tuple[str, str]]
) -> None:
    """Of the compiler's own project alone: any release has other packages that are younger by then."""
    compiler = SimpleNamespace(
        OPEN_DEPENDENCIES=("arrays", "absent"), COMPANIONS=(), find_bundle=lambda _version: None
    )
    for module in (resolve_module, store_module):
        monkeypatch.setattr(module, "find_toolchain", lambda _name: compiler)
    with serve_wheels(wheels) as url:
        store = Store(root=tmp_path / "store", uv=Uv(cache=tmp_path / "uv", options=("--index-url", url)))
        assert store.find_younger(RELEASED, day) == found
