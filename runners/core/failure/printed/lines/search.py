"""Search printed lines for other lines, with a limit on the effort. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runners.core.failure.printed.lines.tokens import Line, has_value, is_same_token

MAX_STEPS = 1_000_000
"""Maximum number of token comparisons. Only lines made to be slow need more, and they do not distinguish runs."""


class TooManySteps(Exception):
    """The lines are too long and too similar to compare."""


@dataclass(slots=True)
class Search:
    """Search for lines in other lines, with at most `MAX_STEPS` comparisons of two tokens."""

    steps: int = 0

    def finds(self, line: Line, among: Sequence[Line]) -> bool:
        return any(self._is_within(line, other) for other in among)

    def count(self, line: Line, among: Sequence[Line]) -> int:
        """Count the places in other lines where a line occurs."""
        places = ((other, at) for other in among for at in range(len(other) - len(line) + 1))
        return sum(self._is_at(line, other, at) for other, at in places)

    def _is_within(self, part: Line, whole: Line) -> bool:
        """True if ``whole`` contains ``part``, token by token.

        A single token (``3``) must be the whole line. The same applies to words without a value (an expression or
        prose).
        """
        self.steps += 1
        if len(part) > len(whole):
            return False
        if len(part) < 2 or not has_value(part):
            return len(part) == len(whole) and self._is_at(part, whole, 0)
        return any(self._is_at(part, whole, start) for start in range(len(whole) - len(part) + 1))

    def _is_at(self, part: Line, whole: Line, start: int) -> bool:
        for at, token in enumerate(part, start):
            self.steps += 1
            if not is_same_token(token, whole[at]):
                break
        else:
            return True
        if self.steps > MAX_STEPS:
            raise TooManySteps
        return False
