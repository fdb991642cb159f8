"""Reading an issue from a file, standard input or GitHub, and the messages for bad input."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from bot.forge.source import MAX_BYTES, parse_issue, read_source
from bot.issue import Issue
from runners.core.errors import UserError

TODAY = date(2026, 11, 21)


def parse(text: str | bytes) -> Issue:
    return parse_issue(text if isinstance(text, bytes) else text.encode(), source="x.md", today=TODAY)


def no_network(repository: str, number: int) -> Issue:
    raise AssertionError(f"asked GitHub for {repository}#{number}")


def test_front_matter_title_and_body_are_read() -> None:
    """All fields of a tracker may stand above the text."""
    issue = parse(
        "---\nrepository: apache/tvm\nnumber: 7\ncreated: 2026-01-02\nauthor: kim\nlabels: [bug]\n"
        "comments:\n  - {author: kim, body: more}\n---\n# It fails\n\nlike this\n"
    )
    assert (issue.title, issue.body) == ("It fails", "like this\n")
    assert (issue.repository, issue.number, issue.created) == ("apache/tvm", 7, date(2026, 1, 2))
    assert (issue.author, issue.labels, issue.comments[0].body) == ("kim", ("bug",), "more")


def test_a_title_in_the_front_matter_leaves_the_first_heading_to_the_body() -> None:
    """A body may begin with a heading of its own. The title may also be given twice."""
    own = parse("---\ntitle: It fails\n---\n# Introduction\n\nlike this\n")
    assert (own.title, own.body) == ("It fails", "# Introduction\n\nlike this\n")
    twice = parse("---\ntitle: It fails\n---\n# It fails\n\nlike this\n")
    assert (twice.title, twice.body) == ("It fails", "like this\n")


def test_an_issue_without_a_date_is_of_today() -> None:
    """The date decides how dependencies are resolved, so it is never empty."""
    assert parse("# T\nbody").created == TODAY


def test_a_thematic_break_at_the_top_is_no_front_matter() -> None:
    """People begin a text with a thematic break."""
    assert parse("---\nhello\n").body == "---\nhello\n"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x00\x01ELF", "binary"),
        (b"caf\xe9", "not UTF-8"),
        (b"x" * (MAX_BYTES + 1), "larger than"),
        (b"---\na: [\n---\n# T", "front matter"),
        (b"---\n" + b"a: &a [x]\nb: *a\n" * 30 + b"---\n# T", "aliases"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(data: bytes, says: str) -> None:
    """The message names the file and its fault."""
    with pytest.raises(UserError, match=says) as refused:
        parse(data)
    assert "x.md" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    """The message lists the forms of ISSUE."""
    with pytest.raises(UserError, match="no file"):
        read_source(str(tmp_path / "none.md"), today=TODAY, fetch=no_network)
    with pytest.raises(UserError, match="directory"):
        read_source(str(tmp_path), today=TODAY, fetch=no_network)


@pytest.mark.parametrize(
    ("source", "host"),
    [
        ("apache/tvm#123", "github.com"),
        ("https://github.com/apache/tvm/issues/123", "github.com"),
        ("https://ghe.example/apache/tvm/issues/123#x", "ghe.example"),
    ],
)
def test_an_address_of_an_issue_is_fetched_from_its_forge(source: str, host: str) -> None:
    """As ``owner/repo#N`` or as a URL."""
    asked: list[tuple[str, int]] = []

    def fetch(repository: str, number: int) -> Issue:
        asked.append((repository, number))
        return parse("# T\nb")

    read_source(source, today=TODAY, fetch=fetch, host=host)
    assert asked == [("apache/tvm", 123)]


def test_a_date_may_have_a_time_and_a_zone() -> None:
    """The day counts in UTC. A moment before the first year is no date."""
    assert parse("---\ncreated: 2026-01-02T23:30:00-05:00\n---\n# T\nb").created == date(2026, 1, 3)
    assert parse("---\ncreated: 2026-01-02 23:30:00\n---\n# T\nb").created == date(2026, 1, 2)
    assert parse("---\ncreated_at: 2026-01-02T10:30:00Z\n---\n# T\nb").created == date(2026, 1, 2)
    assert parse("---\ncreated: 0001-01-01T00:00:00+14:00\n---\n# T\nb").created == date(1, 1, 1)


EXTREMES = [
    ":".join("1" * 3000),
    ":".join("1" * 300) + ".5",
    "9" * 5000,
    "0x" + "f" * 9000,
    "1e999999999",
    *("0b_", "1_0", "!!timestamp x", "!!bool x", "!!int ''", "!!float ''", "!!binary x", "=", ".inf", ".nan", "-1"),
    *("true", "2026-99-01", "0001-01-01T00:00:00+14:00", "[1]", "{a: b}", "&a [*a]", "1.5", "0", "12abc", "\u0663"),
]


@pytest.mark.parametrize("value", [value for value in EXTREMES if not value.endswith("''")])
def test_a_number_that_no_issue_has_is_wrong_usage(value: str) -> None:
    """YAML reads some of these as integers of thousands of digits."""
    with pytest.raises(UserError, match="front matter"):
        parse(f"---\nnumber: {value}\n---\n# T\nbody\n")


@pytest.mark.parametrize("field", ["created", "title", "author", "repository", "labels", "comments", "<<", "? [x]"])
def test_extreme_values_are_text_or_refused(field: str) -> None:
    """The issue can be written as JSON whatever YAML takes its front matter for."""
    for value in EXTREMES:
        with suppress(UserError):
            msgspec.json.encode(parse(f"---\n{field}: {value}\n---\nbody\n"))


@given(st.binary(max_size=400))
def test_any_bytes_are_an_issue_or_a_user_error(data: bytes) -> None:
    """No other exception is raised."""
    try:
        parse(data)
    except UserError:
        return


@given(st.text(max_size=200))
def test_front_matter_of_any_kind_is_read_or_refused(text: str) -> None:
    """YAML has many types; each field has the declared type in the end."""
    try:
        issue = parse(f"---\n{text}\n---\n# T\nbody\n")
    except UserError:
        return
    assert isinstance(issue.title, str)
    assert isinstance(issue.created, date)
