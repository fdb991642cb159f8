"""Slash commands: which lines are commands, and the answers to mistakes."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, strategies as st

from bot.requests.commands import (
    MAX_COMMANDS,
    MAX_LINE,
    OPTIONS,
    VERBS,
    Mistake,
    SlashCommand,
    Verb,
    read_commands,
    render_help,
)
from bot.requests.markdown_lines import CodeBlock


def verbs(body: str) -> list[Verb]:
    return [command.verb for command in read_commands(body).commands]


def test_several_commands_in_one_comment_are_read_in_their_order() -> None:
    """Prose around and between them is ignored."""
    body = "Thanks!\n\n/repro status\nand then\n/repro rerun versions=0.26.0..0.27.0 timeout=60\n\nbye"
    first, second = read_commands(body).commands
    assert (first.verb, first.line) == (Verb.STATUS, 3)
    assert (second.verb, second.line, dict(second.options)) == (
        Verb.RERUN,
        5,
        {"versions": "0.26.0..0.27.0", "timeout": "60"},
    )


@pytest.mark.parametrize(
    "body",
    [
        "    /repro run",
        "```\n/repro run\n```",
        "~~~sh\n/repro run\n~~~",
        "`/repro run`",
        "`\n/repro run\n`",
        "> /repro run",
        "> > said\n/repro run",  # a lazy continuation: still the quote
        "- /repro run",
        "1. /repro run",
        "# /repro run",
        "/repro run\n===",
        "<!-- /repro run -->",
        "<!--\n/repro run\n-->",
        "<!-- never closed\n\n/repro run",
        "<div>\n/repro run\n</div>",
        "<details>\n\n/repro run\n\n</details>",
        "text <!--\n/repro run --> more",
        "<pre>\n\n/repro run\n\n</pre>",
        "I said /repro run",
        "\\/repro run",
        "&#47;repro run",
        "/reproduce run",
        "/repro-run",
        "//repro run",
        "| a |\n| - |\n| /repro run |",
    ],
)
def test_code_quotes_lists_headings_and_html_hold_no_commands(body: str) -> None:
    """People quote each other, paste logs, and mail clients quote whole threads."""
    assert not read_commands(body)


@pytest.mark.parametrize(
    "body", ["/repro run", "/repro run\r\n", "  /repro run", "/REPRO".lower() + "  RUN", "a\n/repro run"]
)
def test_small_differences_of_writing_do_not_matter(body: str) -> None:
    assert verbs(body) == [Verb.RUN]


def test_a_command_after_closed_html_counts() -> None:
    """Only text between the tags belongs to HTML."""
    assert verbs("<details><summary>log</summary>\n\nx\n\n</details>\n\n/repro run") == [Verb.RUN]


def test_fenced_blocks_right_under_a_command_are_its_code() -> None:
    """An IREE testcase has two: the program and the command line."""
    code = "```mlir\nfunc.func @f()\n```\n\n```sh\niree-compile a.mlir\n```\n\n"
    body = f"/repro run\n{code}/repro status\n\ntext\n\n```\nno\n```"
    run, status = read_commands(body).commands
    assert run.blocks == (
        CodeBlock(info="mlir", text="func.func @f()\n"),
        CodeBlock(info="sh", text="iree-compile a.mlir\n"),
    )
    assert status.blocks == ()


@pytest.mark.parametrize("between", ["\nIt prints this:\n", "\n\nIt prints this:\n\n", "\n> quote\n"])
def test_a_block_further_down_is_not_taken_for_the_testcase(between: str) -> None:
    """An output pasted under an explanation must not be run."""
    (command,) = read_commands(f"/repro run{between}```\noutput\n```").commands
    assert command.blocks == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/repro rn", "did you mean `run`"),
        ("/repro re-run", "did you mean `rerun`"),
        ("/repro minimise", "did you mean `minimize`"),
        ("/repro xyzzy", "there are `run`"),
        ("/repro run version=1", "did you mean `versions`"),
        ("/repro status timeout=1", "it takes none"),
        ("/repro run timeout=0", "`timeout=120` is one"),
        ("/repro run timeout=3601", "`timeout=120` is one"),
        ("/repro run versions=$(id)", "is no value for `versions`"),
        ("/repro run fast", "has no value"),
        ("/repro run devices=a devices=b", "given twice"),
        ('/repro run versions="0.1', "left open"),
        ("/repro bisect good=0.1", "needs `bad=…`"),
        ("/repro approve", "needs its SHA256"),
        ("/repro void", "needs its REASON"),
        ("/repro run " + "x" * MAX_LINE, "at most"),
    ],
)
def test_a_mistake_names_the_nearest_valid_form(line: str, said: str) -> None:
    """In one sentence; no part of the line takes effect."""
    reading = read_commands(line)
    assert reading.commands == ()
    assert said in reading.mistakes[0].why


@pytest.mark.parametrize("name", OPTIONS)
def test_no_value_of_an_option_takes_long_to_refuse(name: str) -> None:
    """A comment of one line once kept the parser busy for hours. Long values come from a workflow's inputs."""
    for length in (24, 240, 64 * 1024):
        for unit in ("a", "1", "a,", "1,", ".", "a.", "1..", "-", "_", ">=1", ">=a,", "<"):
            for value in ((unit * length)[:length] + "$", (unit * length)[:length] + "\n", "$" + unit * length):
                start = time.process_time()
                assert OPTIONS[name].pattern.fullmatch(value) is None
                assert time.process_time() - start < 5, (unit, length)


@pytest.mark.parametrize(
    "value", ["0.26.0", "0.25.0,0.26.0..0.27.0,latest", "all", ">=0.25,<0.27", "3.1.0rc20250101"]
)
def test_lists_and_ranges_of_releases_are_values(value: str) -> None:
    (command,) = read_commands(f"/repro run versions={value}").commands
    assert command.options["versions"] == value


def test_options_may_be_written_as_flags() -> None:
    """`--timeout=5` is accepted."""
    (command,) = read_commands("/repro run --timeout=5").commands
    assert dict(command.options) == {"timeout": "5"}


def test_the_number_of_commands_is_limited() -> None:
    """The rest of the comment is one mistake."""
    reading = read_commands("\n".join(["/repro run"] * 50))
    assert len(reading.commands) == MAX_COMMANDS
    assert len(reading.mistakes) == 1


def test_help_lists_every_verb_and_option_of_the_parser() -> None:
    """From one table, so help cannot omit a verb, and the parser accepts every usage shown."""
    text = render_help()
    shown = dict(re.findall(r"^\| `/repro (\w+)([^`]*)`", text, re.MULTILINE))
    assert list(shown) == [str(verb) for verb in VERBS] == [str(verb) for verb in Verb]
    assert re.findall(r"^- `(\w+)=", text, re.MULTILINE) == list(OPTIONS)
    for verb, spec in VERBS.items():
        words = "0123456789abcdef" if spec.words else ""
        options = " ".join(f"{name}={OPTIONS[name].hint}" for name in spec.options)
        assert verbs(f"/repro {verb} {words}{options}") == [verb]


@example("<!--")
@example("`<!--`=")
@given(st.text(alphabet=st.sampled_from("/repo runhelp=`>#<!-_\n\t '\"\\@&;0.,\ud800é"), max_size=200))
def test_any_text_is_read_without_failing(text: str) -> None:
    """Any text gives commands, mistakes or neither. A mistake holds no mention and no link."""
    for body in (text, f"/repro {text}", f"a\n/repro run {text}"):
        reading = read_commands(body)
        assert all(isinstance(one, SlashCommand) for one in reading.commands)
        for mistake in reading.mistakes:
            assert isinstance(mistake, Mistake)
            assert not re.search(r"@\w", mistake.why)
            assert "<!--" not in re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", mistake.why)  # literal in a code span
