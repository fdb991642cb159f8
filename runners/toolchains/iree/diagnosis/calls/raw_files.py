"""Find an array in NumPy's format that a command reads as raw numbers. Pure, by the words of the command."""

from __future__ import annotations

import re

import msgspec

from runners.core.findings.calls import RawFile
from runners.core.protocol import Testcase
from runners.core.toolchain.wrong_call import WrongCall

_TYPED_ARRAY = re.compile(
    r"(?P<flag>--input)=(?P<type>(?:[\d?]+x)*[a-z]{1,4}\d{1,2}\w{0,8})=(?P<file>@[\w./+-]{1,200}\.npy)"
)


def find_raw_array(testcase: Testcase) -> WrongCall | None:
    """Return the first input that names a type before a file in NumPy's format, corrected to only the file.

    By ``iree-run-module --help``, a file with a shape and a type contains raw numbers. Without them, its own header
    describes it. So here the header is read as the first numbers.
    """
    found = next((one for step in testcase.steps for word in step if (one := _TYPED_ARRAY.fullmatch(word))), None)
    if found is None:
        return None
    steps = tuple(tuple(_TYPED_ARRAY.sub(r"\g<flag>=\g<file>", word) for word in step) for step in testcase.steps)
    return WrongCall(
        call=RawFile(flag=found[0], given=found["type"], name=found["file"].removeprefix("@")),
        mended=(msgspec.structs.replace(testcase, steps=steps),),
    )
