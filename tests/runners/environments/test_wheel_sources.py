"""Builds from nightly indexes, pages of links and directories, with tiny wheels and a server on loopback."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from bot.extract.types import Repro
from bot.plan import RunOptions, make_plan
from runners.core.errors import InfraError, UserError
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Claim, ClaimKind, Testcase, TestcaseKind
from runners.environments.config import NIGHTLY_PAGES, Config, WheelSource, read_config
from runners.environments.store import Store
from runners.environments.uv import Uv
from runners.environments.wheel_sources import (
    list_links,
    merge_releases,
    open_catalogue,
    parse_wheel,
    read_network_source,
)
from tests.runners.environments.test_store import build_wheel, run_in

NIGHTLIES = ("3.99.0rc20270101", "3.99.0rc20270102", "3.99.0rc20270103")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with three nightlies of a toolchain's package, and other files."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in NIGHTLIES:
        build_wheel(wheels, "tiny", version, {"tiny.py": f"VERSION = {version!r}\n"})
    (wheels / "README.txt").write_text("not a wheel")
    (wheels / "tiny-1.0.tar.gz").write_bytes(b"source")
    (wheels / "not_a_name.whl").write_bytes(b"")
    (wheels / "tiny-4.0-cp311-cp311-win_amd64.whl").write_bytes(b"for another system")
    return wheels


@pytest.fixture
def site(folder: Path) -> Iterator[str]:
    """The same directory on loopback, as an index: the package's page is at <address>/tiny/."""
    root = folder.parent / "site"
    root.mkdir()
    (root / "tiny").symlink_to(folder)
    serve = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """A test's output is not a log."""


def make_wheel_source(**where: str) -> WheelSource:
    return WheelSource(toolchain="iree", packages=("tiny",), **where)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["index", "page"])
def test_nightlies_of_indexes_and_pages_are_releases(site: str, kind: str, tmp_path: Path) -> None:
    """Each has the day in its name and its links. The store builds one, and its code runs."""
    found = read_network_source(make_wheel_source(**{kind: site if kind == "index" else f"{site}/tiny/"}))
    assert [r.version for r in found] == list(NIGHTLIES)
    newest = found[-1]
    assert (newest.released, newest.prerelease, newest.source) == (date(2027, 1, 3), True, "wheels")
    assert newest.distributions == ("tiny==3.99.0rc20270103",)
    store = Store(root=tmp_path / "store", uv=Uv(cache=tmp_path / "store/uv", options=("--no-index",)))
    assert run_in(store.get_environment(newest), "import tiny; print(tiny.VERSION)") == newest.version


def test_configured_directory_joins_the_catalogue(folder: Path, tmp_path: Path) -> None:
    """Its builds are found by name and by day, ordered among the releases, and installed from the directory."""
    catalogue = open_catalogue(config=Config(wheels=(make_wheel_source(folder=str(folder)),)))
    assert catalogue.find("iree", "3.99.0rc20270102").links == (str(folder),)
    assert [r.version for r in catalogue.select("iree", f"{NIGHTLIES[0]}..{NIGHTLIES[2]}")] == list(NIGHTLIES)
    assert catalogue.find_nearest("iree", "IREE compiler version 3.99.0rc20270102 @ abc").release is not None
    store = Store(root=tmp_path / "store", uv=Uv(cache=tmp_path / "store/uv", options=("--no-index",)))
    environment = store.get_environment(catalogue.find("iree", NIGHTLIES[1]))
    assert run_in(environment, "import tiny; print(tiny.VERSION)") == NIGHTLIES[1]


def test_nightlies_run_only_on_request(folder: Path) -> None:
    """A directory on the command line is a request."""
    catalogue = open_catalogue(config=Config(wheels=(make_wheel_source(folder=str(folder)),)))
    assert not any(r.version in NIGHTLIES for r in catalogue.list_releases("iree"))
    repro = Repro(
        testcase=Testcase(
            kind=TestcaseKind.PYTHON, toolchain="iree", files={"r.py": ""}, steps=(("python", "r.py"),)
        ),
        spans=(),
        claim=Claim(kind=ClaimKind.UNKNOWN),
        device="llvm-cpu",
    )
    assert NIGHTLIES[2] not in make_plan(repro, catalogue, RunOptions()).plan.order
    asked = make_plan(repro, catalogue, RunOptions(wheels=(str(folder),))).plan.order
    assert asked[-3:] == NIGHTLIES


def test_directory_on_the_command_line_serves_every_toolchain(tmp_path: Path) -> None:
    """Package names tell the toolchain. A build needs all packages, and its commit is read from the wheel."""
    commit = "0123456789abcdef" * 2 + "01234567"
    said = f'VERSION = "9.1.0rc20270101"\nREVISIONS = {{"IREE": "{commit}"}}\n'
    build_wheel(tmp_path, "iree_base_compiler", "9.1.0", {"iree/compiler/version.py": said})
    build_wheel(tmp_path, "iree_base_runtime", "9.1.0", {"iree/runtime.py": ""})
    build_wheel(tmp_path, "iree_base_compiler", "9.2.0", {"iree/compiler/version.py": said})
    catalogue = open_catalogue(folders=(str(tmp_path),))
    (newest,) = catalogue.select("iree", "latest")
    assert (newest.version, newest.commit, newest.built) == ("9.1.0", commit, "9.1.0rc20270101")
    assert catalogue.get_listing("tvm") == load_catalogue().get_listing("tvm")


def test_known_release_keeps_its_facts_and_gets_further_links(tmp_path: Path) -> None:
    """A mirror changes neither the commit nor the day of a release."""
    known = load_catalogue().find("iree", "3.13.0")
    for package in ("iree_base_compiler", "iree_base_runtime"):
        build_wheel(tmp_path, package, "3.13.0", {f"{package}.py": ""})
    found = open_catalogue(folders=(str(tmp_path),)).find("iree", "3.13.0")
    assert (found.commit, found.released, found.source) == (known.commit, known.released, "index")
    assert found.links == (str(tmp_path),)


def test_directory_without_wheels_is_refused(tmp_path: Path) -> None:
    """So is a missing directory. The message names the expected packages."""
    with pytest.raises(UserError, match="apache-tvm, iree-base-compiler"):
        open_catalogue(folders=(str(tmp_path),))
    with pytest.raises(UserError, match="cannot be read"):
        open_catalogue(folders=(str(tmp_path / "nowhere"),))


def test_unreachable_source_is_an_infrastructure_error(tmp_path: Path) -> None:
    """The message has the address."""
    with pytest.raises(InfraError, match=r"127\.0\.0\.1:9/ cannot be read"):
        read_network_source(make_wheel_source(page="http://127.0.0.1:9/"))


def test_page_is_parsed_as_html() -> None:
    """Relative, absolute, escaped and hashed links. Yanked wheels and other files are left out."""
    page = """<!DOCTYPE html><html><body><h1>Links</h1>
      <a href="../files/tiny-1.0-py3-none-any.whl#sha256=00">tiny</a>
      <a href='https://x.invalid/d/tiny-1.1%2Bg1234567-py3-none-any.whl'>x</a>
      <a href="tiny-1.2-py3-none-any.whl" data-yanked="broken">x</a> <a name="top">x</a>
      <!-- <a href="tiny-1.3-py3-none-any.whl"> --> <a href="?C=M;O=A">sort</a></body>"""
    names = [wheel for name in list_links(page) if (wheel := parse_wheel(name)) is not None]
    assert [str(wheel.version) for wheel in names] == ["1.0", "1.1+g1234567"]


def test_merged_releases_stay_ascending_and_distinct() -> None:
    """Adding known releases changes no version."""
    listing = load_catalogue().get_listing("iree")
    assert merge_releases(listing, ()) == listing
    assert [r.version for r in merge_releases(listing, listing.releases).releases] == [
        r.version for r in listing.releases
    ]


def test_configuration_file_is_optional(tmp_path: Path) -> None:
    """Without a file every setting has its default."""
    assert read_config(tmp_path / "none.toml") == Config()


def test_each_table_is_one_wheel_source(tmp_path: Path) -> None:
    """With the packages if they are given."""
    path = tmp_path / "config.toml"
    path.write_text(
        '[[wheels]]\ntoolchain = "iree"\npage = "https://example.invalid/nightlies.html"\n'
        '[[wheels]]\ntoolchain = "tvm"\nfolder = "~/wheels"\npackages = ["my-tvm"]\n'
    )
    config = read_config(path)
    assert [source.toolchain for source in config.wheels] == ["iree", "tvm"]
    assert config.wheels[1].packages == ("my-tvm",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[wheels]]\n", "toolchain"),
        ('[[wheels]]\ntoolchain = "iree"\n', "exactly one of index, page and folder, not none"),
        ('[[wheels]]\ntoolchain = "iree"\nindex = "https://a"\npage = "https://b"\n', "not index and page"),
        ('[[wheels]]\ntoolchain = "iree"\npage = "/srv/wheels"\n', "a directory is a folder"),
        ('[[wheels]]\ntoolchain = "iree"\nurl = "https://a"\n', "url"),
        ("wheels = 3\n", "wheels"),
        ("= =", "config.toml"),
    ],
)
def test_mistake_in_the_configuration_is_reported(tmp_path: Path, text: str, says: str) -> None:
    """The message has the file, the table and the key."""
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=says):
        read_config(path)


def test_wheel_without_a_day_in_its_version_has_its_files_day(folder: Path) -> None:
    """The modification time of the file tells the day."""
    built = build_wheel(folder, "tiny", "4.1", {"tiny.py": ""})
    (release,) = open_catalogue(config=Config(wheels=(make_wheel_source(folder=str(folder)),))).select("iree", "4.1")
    assert release.released == datetime.fromtimestamp(built.stat().st_mtime, UTC).date()


def test_a_variable_adds_pages_to_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without a file: a job of a workflow has none."""
    monkeypatch.setenv(NIGHTLY_PAGES, "iree=https://a.example/links.html, tvm=https://b.example/x?a=b")
    pages = (
        WheelSource(toolchain="iree", page="https://a.example/links.html"),
        WheelSource(toolchain="tvm", page="https://b.example/x?a=b"),
    )
    assert read_config(tmp_path / "none.toml").wheels == pages
    file = tmp_path / "config.toml"
    file.write_text('[[wheels]]\ntoolchain = "iree"\nfolder = "/srv"\n')
    assert read_config(file).wheels == (WheelSource(toolchain="iree", folder="/srv"), *pages)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("https://a.example/links.html", "write TOOLCHAIN=ADDRESS"),
        ("iree=http://a.example/links.html", "write TOOLCHAIN=ADDRESS"),
        ("iree=file:///etc", "write TOOLCHAIN=ADDRESS"),
        ("ire=https://a.example/links.html", "unknown toolchain 'ire'"),
    ],
)
def test_a_wrong_page_is_refused_in_one_sentence(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NIGHTLY_PAGES, text)
    with pytest.raises(UserError, match=says):
        read_config(tmp_path / "none.toml")
