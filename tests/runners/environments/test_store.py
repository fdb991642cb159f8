"""The store of environments, with tiny wheels built by the tests: no network, no compiler."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import stat
import subprocess
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import uv as uv_package

from runners.core.errors import InfraError, UserError
from runners.core.packages.catalogue import Release
from runners.core.packages.requirements import check_requirements, load_allowed_requirements, parse_allowance
from runners.environments import atomic_dirs, interpreters, uv as uv_module
from runners.environments.resolve import Unresolvable, render_lock
from runners.environments.store import Environment, Store
from runners.environments.uv import Pin, Uv

pytestmark = pytest.mark.thorough  # each test builds environments with uv

RELEASE = Release(
    toolchain="python",
    version="3.11",
    released=date(2026, 1, 1),
    distributions=("tiny==1.0",),
    pythons=interpreters.PREFERRED,
    source="machine",
)


def build_wheel(folder: Path, name: str, version: str, files: Mapping[str, str], requires: str = "") -> Path:
    """Write a pure-Python wheel with these files and a correct RECORD."""
    info = f"{name}-{version}.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    every = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},{_record_hash(text)},{len(text.encode())}" for path, text in every.items()]
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in {**every, f"{info}/RECORD": "\n".join([*lines, f"{info}/RECORD,,\n"])}.items():
            archive.writestr(inside, text)
    return path


def _record_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    build_wheel(folder, "tiny", "1.0", {"tiny/__init__.py": "VALUE = 1\n", "tiny/more.py": "MORE = 2\n"})
    return folder


def make_store(root: Path, wheels: Path, said: list[str] | None = None, binary: str = "") -> Store:
    said = [] if said is None else said
    binary = binary or uv_package.find_uv_bin()
    uv = Uv(cache=root / "uv", binary=binary, options=("--no-index", "--find-links", str(wheels)))
    return Store(root=root, uv=uv, say=said.append)


@pytest.fixture
def store(tmp_path: Path, wheels: Path) -> Store:
    return make_store(tmp_path / "store", wheels)


def run_in(environment: Environment, code: str) -> str:
    """Return the output of a snippet with the environment's packages. The wheels are our own, so no sandbox is
    needed."""
    done = subprocess.run(
        [environment.interpreter.executable, "-c", code],
        env={"PYTHONPATH": str(environment.site_packages)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


# ------------------------------------------------------------------------------------------------- building


def test_environment_has_the_required_packages(store: Store) -> None:
    """The packages can be imported, are compiled, and are listed."""
    environment = store.get_environment(RELEASE)
    assert run_in(environment, "import tiny; print(tiny.VALUE)") == "1"
    assert list(environment.site_packages.rglob("tiny/__pycache__/__init__.*.pyc"))
    assert environment.list_packages() == {"tiny": "1.0"}
    assert environment.digest.startswith("sha256:")


def test_second_call_starts_no_uv(store: Store) -> None:
    """A warm call needs neither uv's cache nor its binary."""
    first = store.get_environment(RELEASE)
    without = replace(store, uv=replace(store.uv, binary="/nonexistent/uv"))
    assert without.get_environment(RELEASE) == first


def test_environment_is_named_by_its_content(store: Store, wheels: Path) -> None:
    """Two releases with the same wheels share one environment; other wheels make another one."""
    build_wheel(wheels, "tiny", "2.0", {"tiny/__init__.py": "VALUE = 2\n"})
    one = store.get_environment(RELEASE)
    same = store.get_environment(replace(RELEASE, version="3.11.0"))
    other = store.get_environment(replace(RELEASE, distributions=("tiny==2.0",)))
    assert same.digest == one.digest
    assert other.digest != one.digest


def test_bytecode_in_a_wheel_is_replaced(store: Store, wheels: Path) -> None:
    """A stray .pyc in a wheel (numpy 2.1.3 has one) is compiled again and does not count as damage."""
    stray = f"byte/__pycache__/code.cpython-{RELEASE.version.replace('.', '')}.pyc"
    build_wheel(wheels, "byte", "1.0", {"byte/__init__.py": "", "byte/code.py": "OK = 1\n", stray: "stale"})
    environment = store.get_environment(replace(RELEASE, distributions=("byte==1.0",)))
    assert run_in(environment, "import byte.code; print(byte.code.OK)") == "1"


def test_environments_share_their_wheels(store: Store, wheels: Path) -> None:
    """A wheel is unpacked and compiled once for any number of environments."""
    build_wheel(wheels, "other", "1.0", {"other.py": ""})
    one = store.get_environment(RELEASE)
    two = store.get_environment(replace(RELEASE, distributions=("tiny==1.0", "other==1.0")))
    assert one.digest != two.digest
    for file in one.site_packages.rglob("tiny/**/*.py*"):
        assert file.samefile(two.site_packages / file.relative_to(one.site_packages))


def test_every_user_can_read_an_environment(store: Store) -> None:
    """Sandboxes run as nobody, so folders and files are readable by every user."""
    old = os.umask(0o077)
    try:
        environment = store.get_environment(RELEASE)
    finally:
        os.umask(old)
    for path in [environment.folder, *environment.folder.rglob("*")]:
        wanted = 0o555 if path.is_dir() else 0o444
        assert stat.S_IMODE(path.stat().st_mode) & wanted == wanted, path


def test_no_code_of_a_wheel_runs_during_a_build(store: Store, wheels: Path, tmp_path: Path) -> None:
    """A wheel full of hooks (.pth, sitecustomize, modules named like the standard library's) runs none of them."""
    trap = tmp_path / "sprung"
    spring = f"open({str(trap)!r}, 'a').write(__name__)\n"
    names = ("__init__", "sitecustomize", "usercustomize", "py_compile", "concurrent", "importlib", "encodings", "os")
    files = {f"{name}.py": spring for name in names[1:]} | {"hostile/__init__.py": spring}
    build_wheel(wheels, "hostile", "1.0", files | {"hostile.pth": f"import os; {spring}"})
    environment = store.get_environment(replace(RELEASE, distributions=("hostile==1.0",)))
    assert (environment.site_packages / "hostile.pth").exists()
    assert not trap.exists()


def test_source_distribution_is_never_built(store: Store, wheels: Path) -> None:
    """A package that exists only as source is no candidate, so its setup.py does not run."""
    with tarfile.open(wheels / "sdist-1.0.tar.gz", "w:gz") as archive:
        for name, text in (("setup.py", "raise SystemExit('ran')"), ("PKG-INFO", "Name: sdist\nVersion: 1.0\n")):
            entry = tarfile.TarInfo(f"sdist-1.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    with pytest.raises(InfraError, match="cannot be resolved"):
        store.get_environment(replace(RELEASE, distributions=("sdist==1.0",)))


# ------------------------------------------------------------------------------------------------- faults


def test_entry_without_valid_record_is_built_again(store: Store) -> None:
    """An entry without a record, or with an unreadable one, counts as absent."""
    environment = store.get_environment(RELEASE)
    for damage in (None, b"", b'{"schema": 99}', b"\xff\xfe"):
        record = environment.folder / "record.json"
        record.unlink() if damage is None else record.write_bytes(damage)
        assert run_in(store.get_environment(RELEASE), "import tiny; print(tiny.VALUE)") == "1"


def test_truncated_file_is_repaired_in_store_and_cache(tmp_path: Path, wheels: Path) -> None:
    """Files are hard links to uv's cache: damage to one is damage to both."""
    said: list[str] = []
    store = make_store(tmp_path / "store", wheels, said)
    environment = store.get_environment(RELEASE)
    os.truncate(environment.site_packages / "tiny/__init__.py", 0)
    assert run_in(store.get_environment(RELEASE), "import tiny; print(tiny.VALUE)") == "1"
    assert any("damaged" in line for line in said)


def test_changed_file_of_the_same_length_is_built_again(store: Store) -> None:
    """Its time of writing shows the change."""
    environment = store.get_environment(RELEASE)
    code = environment.site_packages / "tiny/__init__.py"
    code.write_text("VALUE = 7\n")
    for copy in (store.root / "wheels").glob("*/site/tiny/__init__.py"):
        assert copy.samefile(code)
    assert run_in(store.get_environment(RELEASE), "import tiny; print(tiny.VALUE)") == "1"


def test_a_store_that_was_copied_by_tar_needs_no_network(tmp_path: Path, store: Store, wheels: Path) -> None:
    """A machine without a network gets its store from another one. GNU's format keeps whole seconds."""
    code = store.get_environment(RELEASE).site_packages / "tiny/__init__.py"
    assert code.stat().st_mtime_ns % 10**9, "the test needs a time with a fraction"
    copy = tmp_path / "copy"
    copy.mkdir()
    packed = subprocess.run(["tar", "-c", "-C", store.root, "."], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", copy], input=packed, check=True)
    said: list[str] = []
    wheels.rename(tmp_path / "out of reach")
    there = make_store(copy, wheels, said)
    assert run_in(there.get_environment(RELEASE), "import tiny; print(tiny.VALUE)") == "1"
    assert said == []


def test_lost_file_is_built_again(store: Store) -> None:
    """The file comes back."""
    environment = store.get_environment(RELEASE)
    (environment.site_packages / "tiny/more.py").unlink()
    assert run_in(store.get_environment(RELEASE), "import tiny.more; print(tiny.more.MORE)") == "2"


def test_comparison_with_the_record_stands_for_a_while(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep asks for the same environments for each issue. A store without trust ends the trust of the others."""
    trusting = replace(store, trust_s=60.0)
    environment = trusting.get_environment(RELEASE)
    measured: list[Path] = []

    def measure(folder: Path) -> atomic_dirs.FolderMeasure:
        measured.append(folder)
        return measure_folder(folder)

    measure_folder = atomic_dirs.measure_folder
    monkeypatch.setattr(atomic_dirs, "measure_folder", measure)
    trusting.get_environment(RELEASE)
    assert len(measured) == 1
    trusting.get_environment(RELEASE)
    assert len(measured) == 1
    replace(store, trust_s=0.0).get_environment(RELEASE)
    trusting.get_environment(RELEASE)
    assert len(measured) == 3
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    trusting.get_environment(RELEASE)
    assert len(measured) == 4
    shutil.rmtree(environment.site_packages.parent)
    assert trusting.get_environment(RELEASE).site_packages.is_dir()


def test_invalid_resolution_is_made_again(store: Store) -> None:
    """The cache of resolutions may have any content."""
    first = store.get_environment(RELEASE)
    for path in (store.root / "resolutions").iterdir():
        path.write_text("[]")
    assert store.get_environment(RELEASE) == first


def _build_in_process(root: Path, wheels: Path, gate: str, said: str) -> None:
    lines: list[str] = []
    while not Path(gate).exists():
        time.sleep(0.01)
    make_store(root, wheels, lines).get_environment(RELEASE)
    Path(said).write_text("\n".join(lines))


def test_concurrent_builders_build_an_environment_once(tmp_path: Path, wheels: Path) -> None:
    """Any number of processes may need the environment: one builds and the others wait."""
    spawn = multiprocessing.get_context("spawn")
    gate = tmp_path / "gate"
    notes = [tmp_path / f"said-{n}" for n in range(20)]
    root = tmp_path / "store"
    builders = [spawn.Process(target=_build_in_process, args=(root, wheels, str(gate), str(note))) for note in notes]
    for builder in builders:
        builder.start()
    gate.touch()
    for builder in builders:
        builder.join(120)
    assert [b.exitcode for b in builders] == [0] * len(builders)
    assert sum(note.read_text().count("for Python") for note in notes) == 1


def _build_forever(root: Path, wheels: Path) -> None:
    os.setpgid(0, 0)
    store = make_store(root, wheels)
    while True:
        environment = store.get_environment(RELEASE)
        (environment.folder / "record.json").unlink(missing_ok=True)
        for record in (root / "wheels").glob("*/record.json"):
            record.unlink(missing_ok=True)


def test_builder_killed_at_any_moment_leaves_no_half_built_entry(tmp_path: Path, wheels: Path) -> None:
    """kill -9 at moments spread over several builds: every entry is complete, and the next build succeeds."""
    spawn = multiprocessing.get_context("spawn")
    root = tmp_path / "store"
    chance = random.Random(20261121)
    for _ in range(8):
        builder = spawn.Process(target=_build_forever, args=(root, wheels))
        builder.start()
        assert builder.pid is not None
        while os.getpgid(builder.pid) != builder.pid:  # on a busy machine an interpreter takes seconds to start
            time.sleep(0.01)
        time.sleep(0.2 + chance.random())  # a few builds of some tenths of a second
        os.killpg(builder.pid, signal.SIGKILL)
        builder.join()
        environment = make_store(root, wheels).get_environment(RELEASE)
        assert run_in(environment, "import tiny, tiny.more; print(tiny.VALUE + tiny.more.MORE)") == "3"
        assert not list((root / "building").iterdir())


def slow_uv(folder: Path) -> tuple[str, Path]:
    """Return a uv that hangs after it has installed everything, and the file that it then creates."""
    flag, script = folder / "installed", folder / "slow-uv"
    real = uv_package.find_uv_bin()
    script.write_text(f'#!/bin/sh\n{real} "$@" || exit\n[ "$2" = install ] || exit 0\ntouch {flag}\nexec sleep 600\n')
    script.chmod(0o755)
    return str(script), flag


def _build_slowly(root: Path, wheels: Path, binary: str) -> None:
    os.setpgid(0, 0)
    make_store(root, wheels, binary=binary).get_environment(RELEASE)


@pytest.fixture
def killed_builder(tmp_path: Path, wheels: Path) -> Path:
    """Kill a builder after the installation and before the record; return the store's root."""
    root = tmp_path / "store"
    binary, flag = slow_uv(tmp_path)
    spawn = multiprocessing.get_context("spawn")
    builder = spawn.Process(target=_build_slowly, args=(root, wheels, binary))
    builder.start()
    while not flag.exists():
        assert builder.is_alive()
        time.sleep(0.02)
    assert builder.pid is not None
    os.killpg(builder.pid, signal.SIGKILL)
    builder.join()
    return root


def test_draft_of_a_killed_builder_is_removed(killed_builder: Path, wheels: Path) -> None:
    """kill -9 leaves a draft and no environment. The next build removes the draft."""
    assert list((killed_builder / "building").iterdir())
    assert not list(killed_builder.glob("environments/*"))
    environment = make_store(killed_builder, wheels).get_environment(RELEASE)
    assert run_in(environment, "import tiny; print(tiny.VALUE)") == "1"
    assert not list((killed_builder / "building").iterdir())


def test_missing_network_is_an_infrastructure_error(tmp_path: Path) -> None:
    """The message is one sentence."""
    store = Store(root=tmp_path, uv=Uv(cache=tmp_path / "uv", offline=True))
    with pytest.raises(InfraError, match="package index cannot be reached") as failure:
        store.get_environment(replace(RELEASE, distributions=("apache-tvm==0.26.0",)))
    assert "\n" not in str(failure.value)
    assert not list(tmp_path.glob("environments/*"))


def test_a_wheel_that_unpacks_to_more_than_the_limit_is_refused(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv is killed while it unpacks, and nothing of the wheel stays on disk. The message names the setting."""
    monkeypatch.setattr(uv_module, "_LOOK_S", 0.001)
    wheel = build_wheel(wheels, "tiny", "1.0", {"tiny/__init__.py": "", "tiny/zeros": "0" * 64 * 2**20})
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    assert wheel.stat().st_size < 2**20
    store = make_store(tmp_path / "store", wheels)
    small = replace(store, uv=replace(store.uv, most_bytes=8 * 2**20))
    with pytest.raises(InfraError, match="wheel_gib"):
        small.get_environment(RELEASE)
    assert not list(small.root.glob("environments/*"))
    assert not list(small.root.glob("building/*"))
    assert sum(path.stat().st_size for path in (small.root / "uv").rglob("*") if path.is_file()) < 8 * 2**20
    assert run_in(store.get_environment(RELEASE), "import tiny; print('whole')") == "whole"


def test_leftovers_of_a_killed_uv_are_removed_after_a_day(tmp_path: Path, wheels: Path) -> None:
    """A younger one may belong to a uv that is unpacking now."""
    store = make_store(tmp_path / "store", wheels)
    for name in (".tmpOld", ".tmpNew"):
        (store.root / "uv" / name / "package").mkdir(parents=True)
    before = time.time() - 25 * 3600
    os.utime(store.root / "uv/.tmpOld", (before, before))
    store.keep_within(2**40)
    assert [path.name for path in (store.root / "uv").glob(".tmp*")] == [".tmpNew"]


class Index:
    """A package index on this machine with one wheel. ``whole`` is the number of times that all of the wheel is sent;
    later answers are cut short."""

    def __init__(self, wheel: Path, whole: int) -> None:
        data = wheel.read_bytes()
        page = f'<a href="/{wheel.name}#sha256={hashlib.sha256(data).hexdigest()}">{wheel.name}</a>'.encode()
        left = itertools.chain([True] * whole, itertools.repeat(False))

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = page if self.path.endswith("/") else data
                self.send_response(200)
                self.send_header("Content-Type", "text/html" if body is page else "application/zip")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body if body is page or next(left) else body[: len(body) // 2])

            do_HEAD = do_GET

            def log_message(self, *words: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"

    def __enter__(self) -> Index:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def large_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel that takes more than one packet. uv does not repeat a download of it."""
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    folder = tmp_path / "index"
    folder.mkdir()
    text = "".join(hashlib.sha256(bytes([number % 251, number // 251])).hexdigest() for number in range(4000))
    return build_wheel(folder, "tiny", "1.0", {"tiny/__init__.py": "VALUE = 1\n", "tiny/data.txt": text})


@pytest.mark.parametrize("whole", [0, 1], ids=["while-resolving", "while-installing"])
@pytest.mark.parametrize("required", [(), ("tiny==1.0",)], ids=["release", "testcase"])
def test_download_cut_short_is_an_infrastructure_error(
    tmp_path: Path, large_wheel: Path, monkeypatch: pytest.MonkeyPatch, whole: int, required: tuple[str, ...]
) -> None:
    """The message names the cause and the next step. It is never the testcase's fault, and the next try succeeds."""
    monkeypatch.setattr("runners.environments.store.check_requirements", lambda wanted, _also: (tuple(wanted), ()))
    release = replace(RELEASE, distributions=() if required else RELEASE.distributions)
    root = tmp_path / "store"
    with Index(large_wheel, whole) as index:
        store = Store(root=root, uv=Uv(cache=root / "uv", options=("--index-url", index.url)))
        with pytest.raises(InfraError, match=r"cut short while (resolving|installing).*: try again") as failure:
            store.get_environment(release, required)
    assert "\n" not in str(failure.value)
    assert not [*root.glob("environments/*"), *root.glob("wheels/*"), *root.glob("building/*")]
    with Index(large_wheel, 9) as index:
        store = Store(root=root, uv=Uv(cache=root / "uv", options=("--index-url", index.url)))
        assert run_in(store.get_environment(release, required), "import tiny; print(tiny.VALUE)") == "1"


def test_index_that_refuses_connections_is_an_infrastructure_error(tmp_path: Path, large_wheel: Path) -> None:
    """As without any network: the index may be down. Environments that were built stay usable."""
    root = tmp_path / "store"
    with Index(large_wheel, 9) as index:
        store = Store(root=root, uv=Uv(cache=root / "uv", options=("--index-url", index.url)))
        environment = store.get_environment(RELEASE)
    with pytest.raises(
        InfraError, match=r"package index cannot be reached while resolving other==1\.0: connect, or use"
    ):
        store.get_environment(replace(RELEASE, distributions=("other==1.0",)))
    assert store.get_environment(RELEASE) == environment
    assert not list(root.glob("building/*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB; skipped if this user may not mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk_is_an_infrastructure_error(small_disk: Path, wheels: Path) -> None:
    """The message is one sentence. No draft is left, and existing environments still work."""
    store = make_store(small_disk / "store", wheels)
    small = store.get_environment(RELEASE)
    build_wheel(wheels, "large", "1.0", {"large.bin": "x" * 4_000_000})
    with pytest.raises(InfraError, match=r"full|cannot be written"):
        store.get_environment(replace(RELEASE, distributions=("large==1.0",)))
    assert not list((store.root / "building").iterdir())
    assert len(list((store.root / "environments").iterdir())) == 1
    assert run_in(store.get_environment(RELEASE), "import tiny; print(tiny.VALUE)") == "1"
    assert store.get_environment(RELEASE) == small


def test_read_only_store_serves_existing_environments(small_disk: Path, wheels: Path) -> None:
    """A missing environment is refused in one sentence."""
    store = make_store(small_disk / "store", wheels)
    environment = store.get_environment(RELEASE)
    build_wheel(wheels, "other", "1.0", {"other.py": ""})
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert store.get_environment(RELEASE) == environment
    assert run_in(environment, "import tiny; print(tiny.VALUE)") == "1"
    with pytest.raises(InfraError, match=r"read-only|cannot be written") as failure:
        store.get_environment(replace(RELEASE, distributions=("other==1.0",)))
    assert "\n" not in str(failure.value)
    assert store.keep_within(0) == 0


def test_read_only_disk_without_a_store_is_named(small_disk: Path, wheels: Path) -> None:
    """The first use of a cache that cannot be written, such as a volume that is mounted read-only."""
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(InfraError, match=r"Read-only file system.*set REPROBOT_CACHE") as failure:
        make_store(small_disk / "store", wheels).get_environment(RELEASE)
    assert str(small_disk / "store") in str(failure.value)
    assert "reinstall" not in str(failure.value)


def test_missing_memory_for_uv_is_not_a_broken_installation(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that the kernel refuses for want of memory says so."""

    def refuse(*_words: object, **_options: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr("runners.environments.uv.subprocess.Popen", refuse)
    with pytest.raises(InfraError, match=r"Cannot allocate memory.*ulimit -v"):
        store.get_environment(RELEASE)


def test_release_without_a_fitting_python_is_refused(store: Store) -> None:
    """The message names the interpreter to install."""
    with pytest.raises(InfraError, match="no CPython"):
        store.get_environment(replace(RELEASE, pythons=("2.7",)))


def test_trim_removes_the_longest_unused_environments(store: Store, wheels: Path) -> None:
    """The newest one stays with the wheels that it shares. Other wheels are removed, also from uv's cache."""
    build_wheel(wheels, "large", "1.0", {"large.bin": "x" * 3_000_000})
    old = store.get_environment(replace(RELEASE, distributions=("tiny==1.0", "large==1.0")))
    kept = store.get_environment(RELEASE)
    for folder in (old.folder, *(store.root / "wheels").iterdir()):
        os.utime(folder, (1, 1))
    assert store.trim(2_000_000) > 3_000_000
    assert not old.folder.exists()
    assert store.measure_size() < 2_000_000
    without = replace(store, uv=replace(store.uv, binary="/nonexistent/uv"))
    assert without.get_environment(RELEASE) == kept
    assert store.get_environment(replace(RELEASE, distributions=("tiny==1.0", "large==1.0"))) == old


def test_keep_within_trims_only_above_the_limit(store: Store, wheels: Path) -> None:
    """The longest unused environments are removed first. Below the limit of the records, the disk is not measured."""
    build_wheel(wheels, "large", "1.0", {"large.bin": "x" * 3_000_000})
    old = store.get_environment(replace(RELEASE, distributions=("large==1.0",)))
    kept = store.get_environment(RELEASE)
    assert store.keep_within(4_000_000) == 0
    for folder in (old.folder, *(store.root / "wheels").iterdir()):
        os.utime(folder, (1, 1))
    assert store.keep_within(2_000_000) > 3_000_000
    assert kept.folder.exists()
    assert not old.folder.exists()


def test_a_start_removes_for_a_limited_time_and_measures_nothing(
    store: Store, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One start stood still for five minutes: it measured a million files once for each environment."""
    build_wheel(wheels, "large", "1.0", {"large.bin": "x" * 3_000_000})
    build_wheel(wheels, "huge", "1.0", {"huge.bin": "x" * 3_000_000})
    made = [store.get_environment(replace(RELEASE, distributions=(f"{name}==1.0",))) for name in ("large", "huge")]
    for at, folder in enumerate((*(one.folder for one in made), *(store.root / "wheels").iterdir())):
        os.utime(folder, (at, at))
    monkeypatch.setattr("runners.environments.store.measure_disk_bytes", lambda folder: pytest.fail(f"{folder}"))
    assert store.keep_within(0, seconds=-1.0) == 0
    assert [one.folder.exists() for one in made] == [True, True]
    assert store.keep_within(4_000_000) > 3_000_000
    assert [one.folder.exists() for one in made] == [False, True]
    assert store.keep_within(4_000_000) == 0


def test_trim_keeps_environments_that_may_be_in_use(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that was used just now stays with any limit. Then the disk is not measured either.

    The measurement of a full store took minutes at each start.
    """
    environment = store.get_environment(RELEASE)

    def refuse(folder: Path) -> int:
        raise AssertionError(f"{folder} was measured")

    monkeypatch.setattr("runners.environments.store.measure_disk_bytes", refuse)
    assert store.trim(0) == 0
    assert environment.folder.exists()


def test_clean_removes_everything(store: Store) -> None:
    """The store then takes no space and can be used again."""
    store.get_environment(RELEASE)
    assert store.measure_size() > 0
    assert store.clean() > 0
    assert store.measure_size() == 0
    assert store.get_environment(RELEASE).list_packages() == {"tiny": "1.0"}


# ------------------------------------------------------------------------------------------------- requirements


def test_requirements_are_resolved_with_the_toolchain(store: Store, wheels: Path) -> None:
    """They make an environment of their own."""
    build_wheel(wheels, "einops", "0.8.0", {"einops.py": "NAME = 'einops'\n"}, requires="tiny>=1")
    base, more = store.get_environment(RELEASE), store.get_environment(RELEASE, ("einops",))
    assert more.list_packages() == {"einops": "0.8.0", "tiny": "1.0"}
    assert base.digest != more.digest
    assert run_in(more, "import einops, tiny; print(einops.NAME)") == "einops"


def _source_only(folder: Path, name: str, trap: Path) -> None:
    """Write a source package in which every hook writes to ``trap``."""
    spring = f"open({str(trap)!r}, 'a').write('ran')\n"
    with tarfile.open(folder / f"{name}-9.0.tar.gz", "w:gz") as archive:
        for inside, text in (
            ("setup.py", spring + "raise SystemExit('ran')"),
            ("pyproject.toml", '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'),
            ("PKG-INFO", f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.0\nDynamic: Requires-Dist\n"),
        ):
            entry = tarfile.TarInfo(f"{name}-9.0/{inside}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


def test_requirement_of_a_testcase_is_never_built_from_source(store: Store, wheels: Path, tmp_path: Path) -> None:
    """A package with source only has no solution. If the source is newer than the wheel, the wheel is used."""
    trap = tmp_path / "sprung"
    _source_only(wheels, "einops", trap)
    with pytest.raises(Unresolvable, match="einops"):
        store.get_environment(RELEASE, ("einops",))
    build_wheel(wheels, "einops", "0.8.0", {"einops.py": ""})
    assert store.get_environment(RELEASE, ("einops",)).list_packages()["einops"] == "0.8.0"
    assert not trap.exists()


@pytest.mark.parametrize(
    "where", ["file://{0}/evil-9.0.tar.gz", "git+file://{0}/evil", "https://127.0.0.1:9/evil.whl"]
)
def test_dependency_by_address_is_not_followed(store: Store, wheels: Path, tmp_path: Path, where: str) -> None:
    """The address is in the metadata of an allowed package."""
    trap = tmp_path / "sprung"
    _source_only(wheels, "evil", trap)
    build_wheel(wheels, "einops", "0.8.0", {"einops.py": ""}, requires=f"evil @ {where.format(wheels)}")
    with pytest.raises((Unresolvable, InfraError)):
        store.get_environment(RELEASE, ("einops",))
    assert not trap.exists()


def test_requirements_without_a_solution_are_unresolvable(store: Store, wheels: Path) -> None:
    """This says nothing about the compiler, and is no failure of infrastructure."""
    build_wheel(wheels, "einops", "0.8.0", {"einops.py": ""}, requires="tiny>=9")
    with pytest.raises(Unresolvable, match="einops"):
        store.get_environment(RELEASE, ("einops",))


@pytest.mark.parametrize(
    "requirement",
    [
        "left-pad",
        "numpy @ https://example.invalid/numpy.whl",
        "git+https://example.invalid/x",
        "-r other.txt",
        "--pre",
        "",
    ],
)
def test_only_listed_names_are_installed(store: Store, requirement: str) -> None:
    """Other names, addresses and options are refused before uv gets them."""
    kept, refused = check_requirements([requirement])
    assert not kept
    assert len(refused) == 1
    with pytest.raises(Unresolvable):
        store.get_environment(RELEASE, (requirement,))


def test_spelling_and_order_of_requirements_do_not_matter() -> None:
    """The same requirements make the same environment."""
    assert (
        check_requirements(["SciPy >= 1.10", "ml_dtypes"])[0] == check_requirements(["ml-dtypes", "scipy>=1.10"])[0]
    )
    assert "numpy" in load_allowed_requirements()


def test_lock_has_no_addresses() -> None:
    """The same wheels give the same text, from any source."""
    pins = [Pin(name=n, version="1", sha256=n * 64, url=f"https://{n}.invalid/x") for n in ("b", "a")]
    assert render_lock(pins) == f"a==1 --hash=sha256:{'a' * 64}\nb==1 --hash=sha256:{'b' * 64}\n"


def test_operator_may_allow_more_packages() -> None:
    """By the name of the import, or by import and distribution if these differ."""
    allowance = parse_allowance(["einx", "cv2=opencv-python", "my-package"])
    assert allowance == {"einx": "einx", "cv2": "opencv-python", "my_package": "my-package"}
    assert check_requirements(["einx"])[0] == ()
    assert check_requirements(["einx"], frozenset(allowance.values()))[0] == ("einx",)
    for nonsense in ("", "a b", "x=", "=x", "../x", "x=y;z"):
        with pytest.raises(UserError, match="allows no package"):
            parse_allowance([nonsense])
