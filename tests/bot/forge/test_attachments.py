"""Linked files are fetched within limits, from the forge alone; on any error a file is merely missing."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import stat
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from bot.cli.app import app
from bot.extract import NoRepro, Repro, Span, extract
from bot.extract.links import Link
from bot.extract.types import SOURCE_SCRIPT, Missing
from bot.forge.attachments import add_attachments, fetch_attachments, find_links
from bot.forge.download import PUBLIC_HOSTS, Download, FetchError, find_hosts, make_downloader
from bot.forge.file_rules import MAX_FILES
from bot.forge.source_files import list_source_links
from bot.issue import Attachment, Comment, Issue, RefusedFile
from bot.plan import RunOptions
from bot.report.assemble import format_command
from bot.report.document import make_extract_document
from bot.report.quote import clean_text
from bot.report.sections.request import render_request
from bot.report.sections.testcase import describe_provenance
from bot.verdict.judge import judge_without_running
from bot.verdict.verdict import Report
from runners.core.protocol import Claim
from tests.bot.extract.reading import list_missing as missing, make_issue

MLIR = "func.func @twice(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"
PLACE = "https://github.com/user-attachments/files/17"


def link(name: str) -> Link:
    return Link(name=name, url=f"{PLACE}/{name}")


def giving(**files: bytes) -> Download:
    """Return a `Download` that knows files by the last part of their URL (``__`` for a dot)."""
    known = {name.replace("__", "."): data for name, data in files.items()}

    def get(url: str, limit: int) -> bytes:
        data = known.get(url.rpartition("/")[2])
        if data is None:
            raise FetchError("could not be fetched (status 404)")
        if len(data) > limit:
            raise FetchError("is larger than this")
        return data

    return get


def packed(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data, method)
    return file.getvalue()


def entry(name: str, mode: int = 0) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("placeholder")
    info.filename = name  # its constructor tidies names; an attacker does not
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def unpack(data: bytes) -> tuple[Attachment | RefusedFile, ...]:
    return fetch_attachments([link("a.zip")], giving(a__zip=data))


def reasons(got: tuple[Attachment | RefusedFile, ...]) -> list[str]:
    return [one.why for one in got if isinstance(one, RefusedFile)]


# ---------------------------------------------------------------------------------------------- which links


def test_links_are_taken_from_the_authors_prose() -> None:
    """Not from code, not from other accounts' comments; a log is no input."""
    read = make_issue(
        f"""
        [a.mlir]({PLACE}/a.mlir), the log: {PLACE}/log.txt
        https://raw.githubusercontent.com/someone/models/main/deep/m.onnx

        ```
        {PLACE}/in_code.mlir
        ```
        """,
        comments=(
            Comment(author="reporter", body="https://gist.github.com/reporter/0123456789abcdef0123456789abcdef"),
            Comment(author="someone", body=f"{PLACE}/theirs.py"),
        ),
    )
    assert [one.name for one in find_links(read)] == [
        "a.mlir",
        "m.onnx",
        "reporter/0123456789abcdef0123456789abcdef",
    ]


def test_a_file_of_a_gist_is_known_by_its_name() -> None:
    """Only the page of a gist has no file name."""
    at = "https://gist.githubusercontent.com/someone/0123456789abcdef0123456789abcdef/raw"
    (found,) = find_links(make_issue(f"{at}/{'0' * 40}/t.mlir"))
    assert (found.name, found.gist) == ("t.mlir", False)


def test_an_enterprise_server_has_its_own_links() -> None:
    """And none of github.com's."""
    hosts = find_hosts({"GITHUB_SERVER_URL": "https://git.example.org"})
    text = f"{PLACE}/a.mlir https://git.example.org/o/r/files/3/b.mlir https://git.example.org/gist/{'ab' * 16}"
    assert [one.name for one in find_links(make_issue(text), hosts.forge)] == ["b.mlir", "ab" * 16]
    assert hosts.is_allowed("https://git.example.org/x")
    assert hosts.is_allowed("https://media.git.example.org/x")
    assert not hosts.is_allowed("https://github.com/x")
    assert find_hosts({}) == PUBLIC_HOSTS


@pytest.mark.parametrize(
    "url",
    [
        "http://github.com/x",
        "https://github.com.evil.example/x",
        "https://evilgithub.com/x",
        "https://evil.example/github.com",
        "https://github.com@evil.example/x",
        "https://evil.example\\.github.com/x",
        "https://evil.example#.github.com/x",
        "https://github.com:8443/x",
        "https://user:word@github.com/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://github.com/x y",
        "https://github.com/x\r\nHost: evil.example",
        "https://other-bucket.s3.amazonaws.com/x",
        "file:///etc/passwd",
        "",
    ],
)
def test_only_plain_https_addresses_of_the_forge_are_allowed(url: str) -> None:
    """Redirects and cleverly written URLs included."""
    assert not PUBLIC_HOSTS.is_allowed(url)


@pytest.mark.parametrize(
    "host",
    ["github.com", "objects.githubusercontent.com", "github-production-repository-file-5c1aeb.s3.amazonaws.com"],
)
def test_the_forges_own_file_stores_are_allowed(host: str) -> None:
    """Signed URLs have long queries."""
    assert PUBLIC_HOSTS.is_allowed(f"https://{host}/a/b.mlir?X-Signature=%2F&b=c~d_e")


# ---------------------------------------------------------------------------------------------- what is taken


@pytest.mark.parametrize("name", ["m.onnx", "x.npy", "a.exe", "a.tar.gz", "noending", "con.txt", "-o.py", ".py"])
def test_other_types_and_odd_names_are_not_fetched(name: str) -> None:
    """The refusal says why, for the comment."""

    def no_network(url: str, limit: int) -> bytes:
        raise AssertionError(url)

    (got,) = fetch_attachments([link(name)], no_network)
    assert isinstance(got, RefusedFile)
    assert got.why


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"\x7fELF\x02\x01\xff\xfe", "not UTF-8"), (b"abc\0def", "binary"), (b"\xff\xfea\0", "not UTF-8")],
)
def test_binary_content_under_a_text_name_is_refused(data: bytes, says: str) -> None:
    """The content decides, not the name."""
    assert says in reasons(fetch_attachments([link("a.txt")], giving(a__txt=data)))[0]


def test_text_arrives_with_plain_line_ends_and_its_hash() -> None:
    """A byte order mark and Windows line ends are removed; the hash is of the bytes fetched."""
    data = b"\xef\xbb\xbfprint(1)\r\n"
    (got,) = fetch_attachments([link("a.py")], giving(a__py=data))
    assert isinstance(got, Attachment)
    assert got.text == "print(1)\n"
    assert got.sha256 == hashlib.sha256(data).hexdigest()


def test_a_hundred_links_cost_a_few_requests() -> None:
    """The other links are named as refused."""
    asked: list[str] = []

    def get(url: str, limit: int) -> bytes:
        asked.append(url)
        return b"x"

    read = make_issue(" ".join(f"{PLACE}/f{n}.mlir" for n in range(100)))
    got = fetch_attachments(find_links(read), get)
    assert len(asked) == MAX_FILES
    assert len(reasons(got)) == len(got) - MAX_FILES > 0


def test_all_files_together_are_limited() -> None:
    """The limit of each fetch shrinks by the bytes fetched before."""
    limits: list[int] = []

    def get(url: str, limit: int) -> bytes:
        limits.append(limit)
        return b"x" * limit

    fetch_attachments([link(f"f{n}.mlir") for n in range(5)], get)
    assert limits == [8 * 2**20, 8 * 2**20, 8 * 2**20, 0, 0]


# ---------------------------------------------------------------------------------------------- zip


def test_a_zip_gives_its_text_files_by_their_bare_names() -> None:
    """With a reason for each other entry."""
    got = unpack(packed(("dir/a.mlir", MLIR.encode()), ("__MACOSX/._a", b"?"), ("m.onnx", b"\x08"), ("b.PY", b"1")))
    assert [one.name for one in got] == ["a.mlir", "m.onnx", "b.PY"]
    assert isinstance(got[0], Attachment)
    assert (got[0].text, got[0].archive) == (MLIR, "a.zip")
    assert "binary" in reasons(got)[0]


@pytest.mark.parametrize(
    ("name", "mode", "says"),
    [
        ("../a.mlir", 0, "leads out"),
        ("x/../../a.mlir", 0, "leads out"),
        ("/etc/a.txt", 0, "leads out"),
        ("..\\a.mlir", 0, "leads out"),
        ("C:a.txt", 0, "leads out"),
        ("a.mlir", stat.S_IFLNK | 0o777, "link or a device"),
        ("a.mlir", stat.S_IFIFO, "link or a device"),
        ("NUL.txt", 0, "name that no file"),
        ("x/Con.mlir", 0, "name that no file"),
        ("a\nb.mlir", 0, "name that no file"),
        ("inner.zip", 0, "archive inside"),
        ("inner.tar.gz", 0, "archive inside"),
    ],
)
def test_hostile_entries_are_refused_and_the_rest_is_kept(name: str, mode: int, says: str) -> None:
    """No file is written to disk, and no hostile entry reaches the testcase."""
    got = unpack(packed((entry(name, mode), b"/etc/passwd"), ("good.mlir", MLIR.encode())))
    assert says in reasons(got)[0]
    assert [one.name for one in got if isinstance(one, Attachment)] == ["good.mlir"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (packed(("a.txt", b"\0" * 2**22)), "times its size"),
        (packed(*((f"{n}.txt", b"0" * 7 * 2**20) for n in range(4))), "than the 24 MiB"),
        (packed(("a.txt", b"0" * (8 * 2**20 + 1))), "larger than 8 MiB"),
        (packed(*((f"{n}.txt", b"") for n in range(201))), "more than 200 entries"),
        (packed(*((f"{n}.txt", b"") for n in range(9))), "more than 8 files"),
        (packed(("a/x.txt", b"1"), ("b/x.txt", b"2")), "twice"),
        (packed(("a.txt", b"x"), method=zipfile.ZIP_LZMA), "unusual"),
        (b"PK\x05\x06 and nothing else", "cannot be unpacked"),
        (b"<html>", "cannot be unpacked"),
        (packed(("a.txt", b"some text" * 9))[:-30], "cannot be unpacked"),
    ],
    ids=range(10),  # a zip holds the time: as an id it differs between the processes that collect the tests
)
def test_bombs_and_broken_zips_are_refused(data: bytes, says: str) -> None:
    """By count, size, ratio and method; none of them raises."""
    assert any(says in why for why in reasons(unpack(data)))


def test_a_zip_with_false_sizes_gives_no_file() -> None:
    """Reading stops at the size in the directory, and the checksum then does not match."""
    data = packed(("a.txt", b"0" * 2**20))
    size = (2**20).to_bytes(4, "little")
    got = unpack(data.replace(size, (9).to_bytes(4, "little")))
    assert not [one for one in got if isinstance(one, Attachment)]
    assert "cannot be unpacked" in reasons(got)[0]


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=12), st.integers(0, 2000))
def test_a_damaged_zip_gives_at_worst_a_reason(damage: list[tuple[int, int]], cut: int) -> None:
    """No exception, and no file with a path for a name."""
    data = bytearray(packed(("x/a.mlir", MLIR.encode()), ("b.py", b"print(1)\n" * 50), ("m.onnx", b"\x08" * 30)))
    for at, byte in damage:
        data[at % len(data)] = byte
    for one in unpack(bytes(data[: cut if cut > 1000 else len(data)])):
        assert isinstance(one, RefusedFile) or "/" not in one.name


def test_an_encrypted_entry_is_refused() -> None:
    """No password is known."""
    data = bytearray(packed(("a.txt", b"x")))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    assert reasons(unpack(bytes(data))) == ["is encrypted"]


# ---------------------------------------------------------------------------------------------- network


@dataclass
class Site:
    """A server with redirects, wrong lengths, web pages and slow answers."""

    url: str
    pages: dict[str, Callable[[BaseHTTPRequestHandler], None]]
    seen: list[dict[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def get(self, path: str, limit: int = 1000, timeout_s: float = 5, total_s: float = 5) -> bytes:
        get = make_downloader(lambda url: url.startswith(f"{self.url}/"), timeout_s=timeout_s, total_s=total_s)
        return get(f"{self.url}{path}", limit)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.seen.append(dict(self.headers.items()))
            with contextlib.suppress(OSError):  # the client has seen enough
                served.pages.get(self.path, answer(404))(self)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = Site(url=f"http://127.0.0.1:{server.server_address[1]}", pages={})
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        served.closing.set()
        server.shutdown()
        thread.join()


def answer(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def page(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return page


def test_a_redirected_download_sends_no_credentials(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forge redirects to its store; no token goes along, even if there is one."""
    monkeypatch.setenv("GITHUB_TOKEN", "secret-word")
    site.pages["/a"] = answer(302, Location="/b")
    site.pages["/b"] = answer(200, b"text", Content_Length="4")
    assert site.get("/a") == b"text"
    assert len(site.seen) == 2
    assert "secret-word" not in str(site.seen)
    assert not any(name.lower() in ("authorization", "cookie") for head in site.seen for name in head)


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (answer(404), "status 404"),
        (answer(500), "status 500"),
        (answer(206, b"x"), "status 206"),
        (answer(302), "redirects"),
        (answer(302, Location="https://evil.example/x"), "leads away"),
        (answer(302, Location="//evil.example/x"), "leads away"),
        (answer(302, Location="file:///etc/passwd"), "leads away"),
        (answer(302, Location="http://[broken"), "could not be fetched"),
        (answer(302, Location="/page"), "redirects"),
        (answer(200, b"x" * 5000), "larger than"),
        (answer(200, b"x" * 5000, Content_Length="5000"), "larger than"),
        (answer(200, b"x" * 5, Content_Length="500"), "ended early"),
        (answer(200, b"sign in", Content_Type="text/html; charset=utf-8"), "web page"),
        (answer(200, b"zz\r\nnot a chunk", Transfer_Encoding="chunked"), "could not be fetched"),
    ],
)
def test_a_failed_download_says_why(site: Site, page: Callable[[BaseHTTPRequestHandler], None], says: str) -> None:
    """Each as one clause, and always as a FetchError."""
    site.pages["/page"] = page
    with pytest.raises(FetchError, match=says):
        site.get("/page")


def test_a_silent_server_times_out(site: Site) -> None:
    """Before the headers."""

    def silent(handler: BaseHTTPRequestHandler) -> None:
        site.closing.wait()

    site.pages["/slow"] = silent
    with pytest.raises(FetchError, match="too long"):
        site.get("/slow", timeout_s=0.05)


def test_a_slow_server_times_out(site: Site) -> None:
    """Each byte is in time, all of them together are not."""

    def drip(handler: BaseHTTPRequestHandler) -> None:
        answer(200)(handler)
        while not site.closing.wait(0.01):
            handler.wfile.write(b"x")

    site.pages["/drip"] = drip
    with pytest.raises(FetchError, match="too long"):
        site.get("/drip", limit=10**6, total_s=0.1)


def test_without_a_network_the_file_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server listens on the port of the discard protocol."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (got,) = fetch_attachments(
        [Link(name="a.mlir", url="http://127.0.0.1:9/a.mlir")], make_downloader(lambda url: True)
    )
    assert reasons((got,)) == ["could not be fetched: its host cannot be reached from here"]


# ---------------------------------------------------------------------------------------------- into the testcase

COMMAND = "\n\n```\niree-compile pool.mlir --iree-hal-target-backends=llvm-cpu -o pool.vmfb\n```\n"


def read(body: str, get: Download, toolchain: str | None = None) -> tuple[Issue, Repro | NoRepro]:
    issue = add_attachments(make_issue(body, "It crashes"), toolchain=toolchain, forge="github.com", download=get)
    return issue, extract(issue, toolchain=toolchain)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("pool.mlir", MLIR.encode()),
        ("pool.mlir.txt", MLIR.encode()),
        ("pool.txt", MLIR.encode()),
        ("whatever.txt", MLIR.encode()),
        ("pool.zip", packed(("x/pool.mlir", MLIR.encode()))),
        ("case.zip", packed(("readme.txt", b"read me"), ("pool.mlir", MLIR.encode()))),
    ],
)
def test_a_file_named_by_a_command_is_filled_in(name: str, data: bytes) -> None:
    """By its name, its name before the tracker's suffix, its stem, or as the only file."""
    _, found = read(f"Unpack [it]({PLACE}/{name})." + COMMAND, giving(**{name.replace(".", "__"): data}))
    assert isinstance(found, Repro)
    assert found.missing == ()
    assert found.testcase.files == {"pool.mlir": MLIR}
    (span,) = found.spans
    assert (span.file, span.block, span.lines) == ("pool.mlir", 0, (1, 3))
    (repair,) = [repair.detail for repair in found.repairs if repair.kind == "attachment"]
    assert repair == span.attachment
    assert repair == (f"pool.mlir from {name}" if name.endswith(".zip") else name)


def test_a_file_in_the_issues_text_is_never_replaced() -> None:
    """No file is fetched if the text is complete."""

    def no_network(url: str, limit: int) -> bytes:
        raise AssertionError(url)

    body = f"[pool.mlir]({PLACE}/pool.mlir)\n\n```mlir\n{MLIR}```{COMMAND}"
    issue, found = read(body, no_network)
    assert issue.attachments == ()
    assert isinstance(found, Repro)
    assert [span.block for span in found.spans] == [1]


def test_a_log_is_not_taken_for_the_input() -> None:
    """Even as the only file: its content is no MLIR."""
    _, found = read(f"[x.txt]({PLACE}/x.txt)" + COMMAND, giving(x__txt=b"error: it broke\n"))
    assert missing(found) == [("file", "pool.mlir")]


def test_an_attached_script_is_the_testcase() -> None:
    """If the issue's text has no program."""
    script = b"import tvm\nimport numpy as np\n\nprint(tvm.nd.array(np.ones(3)))\n"
    _, found = read(f"Run [case.py]({PLACE}/case.py) with tvm 0.19.", giving(case__py=script))
    assert isinstance(found, Repro)
    assert found.testcase.files["repro.py"].encode() == script
    assert [span.attachment for span in found.spans] == ["case.py"]
    assert ("attachment", "case.py") in [(repair.kind, repair.detail) for repair in found.repairs]


def test_a_gist_is_read_by_its_content() -> None:
    """Its page gives no file name; the raw file is below it."""
    page = "https://gist.github.com/someone/0123456789abcdef0123456789abcdef"
    _, found = read(f"tvm fails with {page}", giving(raw=b"import tvm\nprint(tvm.__version__)\n"))
    assert isinstance(found, Repro)
    assert found.missing == ()


def test_an_attached_module_brings_its_own_requirements() -> None:
    """Its distributions are installed; modules that it imports are missing unless they are linked too."""
    body = f"```python\nimport tvm\nimport helper\nhelper.go()\n```\n[helper.py]({PLACE}/helper.py)\n"
    _, found = read(body, giving(helper__py=b"import onnx\nimport deeper\n\ndef go():\n    print(onnx, deeper)\n"))
    assert isinstance(found, Repro)
    assert list(found.testcase.files) == ["repro.py", "helper.py"]
    assert "onnx" in found.testcase.requirements
    assert missing(found) == [("module", "deeper")]


@pytest.mark.parametrize(
    ("source", "options", "fetched"),
    [
        ("file", (), False),
        ("file", ("--fetch-attachments",), True),
        ("o/r#7", (), True),
        ("o/r#7", ("--no-fetch-attachments",), False),
    ],
)
def test_links_of_a_local_file_are_followed_only_on_request(
    source: str, options: tuple[str, ...], fetched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a local file needs no network; an issue on the forge is read with its links."""
    body = f"[pool.mlir]({PLACE}/pool.mlir)" + COMMAND
    (tmp_path / "issue.md").write_text(f"# It crashes\n{body}")
    monkeypatch.setattr("bot.forge.github.GithubForge.fetch_issue", lambda *_: make_issue(body, "It crashes"))
    monkeypatch.setattr("bot.forge.download.make_downloader", lambda _: giving(pool__mlir=MLIR.encode()))
    at = str(tmp_path / "issue.md") if source == "file" else source
    done = CliRunner().invoke(app, ["extract", at, *options])
    assert json.loads(done.stdout)["repro"]["files"] == ({"pool.mlir": MLIR} if fetched else {})


def test_the_repeat_command_fetches_attachments() -> None:
    """With the option only where fetching is not the default."""
    body = f"[pool.mlir]({PLACE}/pool.mlir)" + COMMAND
    issue, _ = read(body, giving(pool__mlir=MLIR.encode()))
    assert format_command(issue, None, RunOptions()) == "reprobot reproduce test --fetch-attachments"
    assert format_command(replace(issue, source="o/r#7"), None, RunOptions()) == "reprobot reproduce 'o/r#7'"


def test_the_origin_of_a_linked_file_is_shown() -> None:
    """A foreign name is in a code span of the comment, and cleaned text on the page."""
    span = Span(file="a.mlir", block=0, lines=(1, 3), attachment="a|b`@me.mlir from a.zip")
    assert describe_provenance(span) == "the linked ``a¦b`@\u200bme.mlir from a.zip``"
    assert describe_provenance(span, clean_text) == "the linked a|b`@me.mlir from a.zip"


def test_a_missing_file_says_why() -> None:
    """In the extraction, the document and the comment."""
    body = f'```python\nimport onnx\nimport tvm\nprint(tvm, onnx.load("m.onnx"))\n```\n[m.zip]({PLACE}/m.zip)\n'
    issue, found = read(body, giving(m__zip=packed(("m.onnx", b"\x08\x07"))))
    assert [lack.why for lack in found.missing] == ["is a binary file, which a testcase cannot hold yet"]
    listed = make_extract_document(issue, found)["missing"]
    assert listed == [{"kind": "file", "name": "m.onnx", "url": f"{PLACE}/m.zip", "why": found.missing[0].why}]
    verdict = judge_without_running(found)
    assert verdict is not None
    report = Report(
        issue=issue, extraction=found, observations=(), findings=(), bisections=(), verdict=verdict, command=""
    )
    assert "`m.onnx`: it is a binary file" in render_request(report).body


def test_offline_only_the_reason_differs() -> None:
    """No exception, and no part of the extraction is lost."""
    body = f"[pool.zip]({PLACE}/pool.zip)" + COMMAND
    _, offline = read(body, giving())
    alone = extract(make_issue(body, "It crashes"))
    assert missing(offline) == missing(alone) == [("file", "pool.mlir")]
    assert offline.missing[0].why == "could not be fetched (status 404)"


def test_the_only_script_is_not_taken_for_a_module_of_another_name() -> None:
    """It is taken for the program that imports the module."""
    body = f"```python\nimport tvm\nimport helper\nhelper.go()\n```\n[full.py]({PLACE}/full.py)\n"
    _, found = read(body, giving(full__py=b"import tvm\nimport helper\n\nhelper.more()\n"))
    assert ("module", "helper") in missing(found)


def test_long_attachments_are_not_searched_for_a_claim() -> None:
    """A written-out model fills the file that a command names."""
    long = MLIR + f"// {'0' * 7_000_000}\n"
    _, found = read(f"[pool.mlir]({PLACE}/pool.mlir)" + COMMAND, giving(pool__mlir=long.encode()))
    assert isinstance(found, Repro)
    assert found.testcase.files == {"pool.mlir": long}


# ---------------------------------------------------------------------------------------------- repositories


@dataclass
class Sources:
    """Files by address. It remembers what was asked for."""

    files: dict[str, bytes]
    asked: list[str] = field(default_factory=list)

    def __call__(self, url: str, limit: int) -> bytes:
        self.asked.append(url)
        if url not in self.files:
            raise FetchError("could not be fetched (status 404)")
        return self.files[url]


RAW = "https://raw.githubusercontent.com"
SCRIPT = b"import tvm\n\nprint(tvm.compile(tvm.IRModule({})))\n"


@pytest.mark.parametrize(
    ("says", "at"),
    [
        ("IREE 3.9.0 crashes", "v3.9.0"),
        ("iree-base-compiler 3.10.0rc20260401 crashes", "iree-3.10.0rc20260401"),
        (f"IREE crashes\n\nCommit: {'9f' * 20}", "9f" * 20),
        ("IREE crashes", "HEAD"),
    ],
)
def test_a_file_of_the_compilers_repository_is_read_at_the_reported_version(says: str, at: str) -> None:
    """A command names the file below the root of a checkout."""
    address = f"{RAW}/iree-org/iree/{at}/tests/e2e/tensor_ops/pool.mlir"
    command = COMMAND.replace("pool.mlir", "~/src/iree/tests/e2e/tensor_ops/pool.mlir")
    sources = Sources({address: MLIR.encode()})
    _, found = read(says + command, sources)
    assert sources.asked == [address]
    assert isinstance(found, Repro)
    assert (found.missing, found.testcase.files) == ((), {"pool.mlir": MLIR})


def test_a_script_of_the_compilers_repository_is_the_testcase() -> None:
    address = f"{RAW}/apache/tvm/v0.25.0/tests/python/relax/test_pool.py"
    _, found = read("tvm 0.25.0 fails. Just run tests/python/relax/test_pool.py.", Sources({address: SCRIPT}))
    assert isinstance(found, Repro)
    assert found.testcase.files["repro.py"].encode() == SCRIPT
    missed = read("tvm 0.25.0 fails. Just run tests/python/relax/test_pool.py.", Sources({}))[1]
    assert missing(missed) == [("source-script", "tests/python/relax/test_pool.py")]


@pytest.mark.parametrize(
    ("version", "commit"),
    [
        ("0.25.0", "v0.25.0"),
        ("0.25.0rc1", "v0.25.0.rc1"),
        ("0.25", "HEAD"),
        ("0.25.0foo", "HEAD"),
        ("0.25.0.x", "HEAD"),
    ],
)
def test_a_text_that_is_no_whole_version_stands_for_the_newest_commit(version: str, commit: str) -> None:
    """Such a text comes from the report, and may be anything."""
    missed = NoRepro(
        reason="",
        claim=Claim(versions=(version,)),
        toolchain="tvm",
        missing=(Missing(kind=SOURCE_SCRIPT, name="tests/python/test_a.py"),),
    )
    (link,) = list_source_links(make_issue("Run tests/python/test_a.py."), missed)
    assert link.url == f"{RAW}/apache/tvm/{commit}/tests/python/test_a.py"


@pytest.mark.parametrize(
    "path",
    ["/tmp/pool.mlir", "pool.mlir", "tests/e2e/../../../../pool.mlir", "https://x.org/tests/e2e/a?b/pool.mlir"],
)
def test_other_files_are_not_looked_for_in_the_compilers_repository(path: str) -> None:
    sources = Sources({})
    read("IREE 3.9.0 crashes" + COMMAND.replace("pool.mlir", path), sources)
    assert sources.asked == []


def test_the_page_of_a_testcase_in_a_repository_is_a_link_to_it() -> None:
    """A page of the compiler's source, or of a row of a file, is only talked about."""
    home = "https://github.com/someone/bugs/blob"
    shown = f"{home}/main/repros/pool.mlir"
    sources = Sources({f"{RAW}/someone/bugs/main/repros/pool.mlir": MLIR.encode()})
    _, found = read(f"Take {shown}.{COMMAND}", sources)
    assert isinstance(found, Repro)
    assert found.missing == ()
    for other in (f"{shown}#L3", f"{home}/main/src/pool.mlir", f"{home}/main/repros/pool.cc"):
        sources = Sources({})
        read(f"Take {other}.{COMMAND}", sources)
        assert sources.asked == [], other
