"""The dumps of the compiler are read in both of their formats."""

from __future__ import annotations

from runners.guest.iree.ir_dumps import read_dumps

OLD = """\
// -----// IR Dump Before First (its-first) //----- //
module {
}
// -----// IR Dump Before Second (its-second) ('util.func' operation: @f) //----- //
util.func public @f() {
  util.return
}

x.mlir:3:1: error: 'util.func' op is refused
note: see current operation
// -----// IR Dump After Second Failed (its-second) //----- //
util.func public @f() {
}
// -----// IR Dump After First Failed (its-first) //----- //
module {
}
"""


def test_first_reported_failure_is_the_innermost_pass() -> None:
    """The passes around the failing pass report their failure later."""
    found = read_dumps(OLD.splitlines(keepends=True))
    assert found.failed is not None
    assert (found.failed.name, found.failed.argument) == ("Second", "its-second")
    assert found.begun == 2
    assert found.before["Second"].operation == ("util.func", "f")


def test_both_formats_of_headers_are_read() -> None:
    """Options follow the argument since release 3.11."""
    new = "// -----// IR Dump Before Only: its-only{level=2 name=x} //----- //\nmodule {\n}\n"
    assert read_dumps(new.splitlines()).before["Only"].argument == "its-only"


def test_ir_ends_where_a_diagnostic_or_a_crash_begins() -> None:
    """A printed stack is not part of a module."""
    second = read_dumps(OLD.splitlines()).before["Second"]
    assert second.lines == ["util.func public @f() {", "  util.return", "}", ""]
    for words in ("Please report issues to https://example.org", "Stack dump:\n0.\tProgram arguments: x"):
        crash = f"// -----// IR Dump Before Only (its-only) //----- //\nmodule {{\n}}\n{words}\n #0 0x0 f()\n"
        assert read_dumps(crash.splitlines()).before["Only"].lines == ["module {", "}"]


def test_last_application_is_kept_and_counted() -> None:
    """The last input of a pass that runs many times is kept, with the number of runs."""
    many = "".join(f"// -----// IR Dump Before Only (its-only) //----- //\nmodule @m{n} {{\n" for n in range(7))
    seen = read_dumps(many.splitlines()).before["Only"]
    assert (seen.application, seen.lines) == (7, ["module @m6 {"])
