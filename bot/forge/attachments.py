"""Files that an issue links to, fetched from the forge's own hosts. Whatever goes wrong, the file is merely missing.

No token goes along, and nothing is ever unpacked to disk: a file is text in the issue, or a reason why it is not.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import re
import stat
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Protocol
from urllib.parse import unquote, urljoin, urlsplit

from bot.extract import extract
from bot.extract.blocks.markdown import parse_markdown
from bot.extract.links import GITHUB, Link, find_links as links_in
from bot.issue import Attachment, Issue, Refused

MAX_FILES = 8
"""Links followed, and files taken out of each zip."""
MAX_FILE_BYTES = 8 * 1024**2
_MIB = MAX_FILE_BYTES // 1024**2
MAX_TOTAL_BYTES = 24 * 1024**2
"""Of everything fetched and unpacked together."""
MAX_ENTRIES = 200
"""In the directory of a zip."""
MAX_RATIO = 200
"""Deflate reaches 1032; MLIR with a splat of zeros written out reaches about 100."""
MAX_REDIRECTS = 4
MAX_COMMENTS = 5

TEXT = frozenset({".py", ".mlir", ".txt", ".json"})
BINARY = frozenset({".onnx", ".npy", ".npz", ".pkl", ".pt", ".vmfb", ".mlirbc", ".irpa"})
_ARCHIVE = frozenset({".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".7z", ".rar", ".zst", ".whl"})

Get = Callable[[str, int], bytes]
"""Address and the most bytes to read → the file. Raises FetchError; the only effect here."""


class FetchError(Exception):
    """Why there is no file: a clause after "it …"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Where files may come from: ``forge`` and the names below ``domains``; ``exact`` are single hosts."""

    forge: str
    domains: tuple[str, ...]
    exact: frozenset[str] = frozenset()

    def allow(self, url: str) -> bool:
        """Plain https on one of the hosts, without anything that two readers of an address may read differently."""
        if not re.fullmatch(r"https://[a-z0-9.-]{1,253}(?::443)?(?:[/?][!-\[\]-~]*)?", url):
            return False
        host = urlsplit(url).hostname or ""
        return host in self.exact or any(host == name or host.endswith(f".{name}") for name in self.domains)


# GitHub's own content security policy names the two buckets that attachments redirect to.
PUBLIC = Hosts(
    forge=GITHUB,
    domains=(GITHUB, "githubusercontent.com"),
    exact=frozenset(
        f"github-production-{name}.s3.amazonaws.com" for name in ("repository-file-5c1aeb", "user-asset-6210df")
    ),
)


def hosts_of(environment: Mapping[str, str]) -> Hosts:
    """The hosts of the forge that ``GITHUB_SERVER_URL`` names (set by GitHub's runners), else of github.com."""
    forge = (urlsplit(environment.get("GITHUB_SERVER_URL", "")).hostname or GITHUB).lower()
    return PUBLIC if forge == GITHUB else Hosts(forge=forge, domains=(forge,))


def with_attachments(issue: Issue, *, toolchain: str | None, forge: str, get: Get) -> Issue:
    """``issue`` with the files it links to, when its text alone does not do. Raises nothing."""
    if not extract(issue, toolchain=toolchain).missing:
        return issue
    got = fetch_attachments(find_links(issue, forge), get)
    return replace(
        issue,
        attachments=tuple(one for one in got if isinstance(one, Attachment)),
        refused=tuple(one for one in got if isinstance(one, Refused)),
    )


def find_links(issue: Issue, forge: str = GITHUB) -> tuple[Link, ...]:
    """Links to inputs in the prose of the description and of the author's first comments; links to logs are not."""
    own = [comment.body for comment in issue.comments if comment.author == issue.author and comment.author]
    documents = (parse_markdown(body) for body in (issue.body, *own[:MAX_COMMENTS]))
    prose = "\n".join(part.text for document in documents for part in document.prose)
    return tuple(link for link in links_in(prose, forge) if not link.shows_output)


def fetch_attachments(links: Sequence[Link], get: Get) -> tuple[Attachment | Refused, ...]:
    """Every text file behind ``links``, those in zips included, and a reason for every other one. Raises nothing."""
    got: list[Attachment | Refused] = []
    left = MAX_TOTAL_BYTES
    for number, link in enumerate(links):
        if number < MAX_FILES:
            files, cost = _behind(link, get, left)
            left -= cost
        else:
            files = [_Refusal(_file_name(link), link.url)(f"is behind more than {MAX_FILES} links")]
        got += (one if isinstance(one, Refused) else _as_text(*one, link) for one in files)
    return tuple(got)


File = tuple[str, bytes]


def _behind(link: Link, get: Get, left: int) -> tuple[list[File | Refused], int]:
    """The files behind one link, and how many of the ``left`` bytes it took to fetch and unpack them."""
    name = _file_name(link)
    refuse = _Refusal(name, link.url)
    if why := _refused_name(name):
        return [refuse(why)], 0
    try:
        data = get(f"{link.url}/raw" if link.gist else link.url, min(MAX_FILE_BYTES, left))
    except FetchError as error:
        return [refuse(str(error))], 0
    if not _is_zip(name):
        return [(name, data)], len(data)
    files = _unzip(data, link, left - len(data))
    return files, len(data) + sum(len(one[1]) for one in files if not isinstance(one, Refused))


@dataclass(frozen=True, slots=True)
class _Refusal:
    name: str
    url: str

    def __call__(self, why: str) -> Refused:
        return Refused(name=self.name, url=self.url, why=why)


def _file_name(link: Link) -> str:
    """The link's bare file name; empty for a gist, whose file has a name only on its page."""
    return "" if link.gist else PurePosixPath(unquote(link.name, errors="replace")).name


def _is_zip(name: str) -> bool:
    return name.lower().endswith(".zip")


_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.I)
"""What Windows takes for a device under any ending."""


def _refused_name(name: str) -> str:
    """Why a file of this name is not even fetched or unpacked; empty when it may be."""
    suffix = PurePosixPath(name).suffix.lower()
    if not name or suffix in TEXT or suffix == ".zip":
        safe = re.fullmatch(r"[\w+][\w.+ -]{0,199}", name) and not _DEVICE.match(name)
        return "" if safe or not name else "has a name that no file should have"
    if suffix in BINARY:
        return "is a binary file, which a testcase cannot hold yet"
    return f"is none of {', '.join(sorted({*TEXT, '.zip'}))}"


def _as_text(name: str, data: bytes, link: Link) -> Attachment | Refused:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Refused(name=name, url=link.url, why=f"is not UTF-8 text (byte {error.start})")
    if "\0" in text:
        return Refused(name=name, url=link.url, why="is a binary file by its content")
    return Attachment(
        name=name,
        text=text.replace("\r\n", "\n"),
        url=link.url,
        sha256=hashlib.sha256(data).hexdigest(),
        archive=_file_name(link) if _is_zip(_file_name(link)) else "",
    )


# ---------------------------------------------------------------------------------------------- zip


def _unzip(data: bytes, link: Link, budget: int) -> list[File | Refused]:
    """The files of a zip by their bare names, in memory; the whole of it is refused when it looks like a bomb."""
    refuse = _Refusal(_file_name(link), link.url)
    # Opening builds the whole directory: its size is looked at first.
    if data.count(b"PK\x01\x02") > MAX_ENTRIES:
        return [refuse(f"is a zip of more than {MAX_ENTRIES} entries")]
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not _is_litter(entry)]
            if why := _refused_directory(entries, len(data), budget):
                return [refuse(why)]
            return list(_members(archive, entries, link))
    except Exception:  # damaged zips raise nearly anything: IndexError, struct.error, NotImplementedError
        return [refuse(_DAMAGED)]


_DAMAGED = "cannot be unpacked: it is damaged, or no zip"


def _is_litter(entry: zipfile.ZipInfo) -> bool:
    """Folders, and what file managers add."""
    return (
        entry.filename.endswith("/")
        or entry.filename.startswith("__MACOSX/")
        or entry.filename.endswith((".DS_Store", "Thumbs.db"))
    )


def _refused_directory(entries: Sequence[zipfile.ZipInfo], packed: int, budget: int) -> str:
    """Why nothing of such a zip is unpacked. The sizes are the zip's own claims; reading stops at them."""
    total = sum(entry.file_size for entry in entries if not _refused_entry(entry))
    if total > budget:
        return f"unpacks to more than the {MAX_TOTAL_BYTES // 1024**2} MiB there is for all files"
    if total > MAX_RATIO * packed:
        return f"unpacks to more than {MAX_RATIO} times its size"
    return ""


def _members(archive: zipfile.ZipFile, entries: Iterable[zipfile.ZipInfo], link: Link) -> Iterator[File | Refused]:
    taken: set[str] = set()
    for entry in entries:
        name = PurePosixPath(entry.filename).name
        refuse = _Refusal(name[:200], link.url)
        if why := _refused_entry(entry):
            yield refuse(why)
        elif name in taken:
            yield refuse("is in its zip twice")
        elif len(taken) == MAX_FILES:
            yield refuse(f"is in a zip of more than {MAX_FILES} files")
        else:
            taken.add(name)
            try:
                with archive.open(entry) as file:
                    yield name, file.read(MAX_FILE_BYTES)
            except Exception:  # as above
                yield refuse(_DAMAGED)


def _refused_entry(entry: zipfile.ZipInfo) -> str:
    path = PurePosixPath(entry.filename)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if path.is_absolute() or ".." in path.parts or re.search(r"[\\:]", entry.filename):
        return "has a path that leads out of its zip"
    if kind not in (0, stat.S_IFREG):
        return "is a link or a device in its zip"
    if path.suffix.lower() in _ARCHIVE:
        return "is an archive inside an archive"
    if entry.flag_bits & 0x1:
        return "is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in an unusual way"  # others may ask for gigabytes of memory before the first byte
    if entry.file_size > MAX_FILE_BYTES:
        return f"is larger than {_MIB} MiB"
    return _refused_name(path.name)


# ---------------------------------------------------------------------------------------------- network


class _Answer(Protocol):
    """What is used of an answer."""

    status: int
    headers: Mapping[str, str]

    def read1(self, n: int) -> bytes: ...


def web_get(allow: Callable[[str], bool], *, timeout_s: float = 10, total_s: float = 60) -> Get:
    """A `Get` over the network: only where ``allow`` says so, redirects too; ``total_s`` is for all of its calls.

    On urllib's bare handlers, since these send no credentials; requests would look for some in a ``.netrc``.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler(), urllib.request.HTTPHandler(), urllib.request.HTTPSHandler()):
        opener.add_handler(handler)
    deadline = time.monotonic() + total_s

    def get(url: str, limit: int) -> bytes:
        for _ in range(MAX_REDIRECTS + 1):
            if not allow(url):
                raise FetchError("leads away from the forge's own hosts")
            request = urllib.request.Request(url, headers={"User-Agent": "reprobot", "Accept-Encoding": "identity"})
            try:
                with opener.open(request, timeout=_left(deadline, timeout_s)) as answer:
                    if answer.status not in (301, 302, 303, 307, 308):
                        return _body(answer, limit, deadline)
                    url = urljoin(url, answer.headers.get("Location", ""))
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise FetchError(_in_words(error)) from None
        raise FetchError("is behind too many redirects")

    return get


def _in_words(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "took too long to fetch"
    if isinstance(error, urllib.error.URLError):
        return "could not be fetched: its host cannot be reached from here"
    return f"could not be fetched ({type(cause).__name__})"


def _left(deadline: float, most: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return min(left, most)


def _body(answer: _Answer, limit: int, deadline: float) -> bytes:
    """At most ``limit`` bytes, whatever the headers claim."""
    if answer.status != 200:
        raise FetchError(f"could not be fetched (status {answer.status})")
    if answer.headers.get("Content-Type", "").startswith("text/html"):
        raise FetchError("is a web page now, perhaps one that asks to sign in")
    data = bytearray()
    while chunk := answer.read1(64 * 1024):
        data += chunk
        if len(data) > limit:
            raise FetchError(f"is larger than {_MIB} MiB, or more than {MAX_TOTAL_BYTES // 1024**2} with the others")
        _left(deadline, 1)
    if (told := answer.headers.get("Content-Length", "")).isdecimal() and len(data) != int(told):
        raise FetchError("ended early")
    return bytes(data)
