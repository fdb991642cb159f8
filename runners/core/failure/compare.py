"""Are two signatures the same failure? Pure.

The type, what the message says apart from a testcase's own values, the operation or the function that a check was
about, and the compiler's frames. Every answer has its reason in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from runners.core.failure.array_mismatch import explain_difference, parse_mismatch
from runners.core.failure.normalize import TOKEN, normalize_message, split_tokens
from runners.core.failure.parse import NATIVE
from runners.core.protocol import Signature
from runners.core.toolchain.failures import FailureVocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """``score`` 0 … 1; ``why`` says in words what agreed or not. At least ``SAME`` counts as the same failure."""

    score: float
    why: str


SAME = 0.7


def compare_signatures(
    reported: Signature,
    observed: Signature,
    vocabulary: FailureVocabulary,
    renames: Mapping[str, str] | None = None,
) -> Similarity:
    """How alike two failures are. ``reported`` may be partial (one line, cut by "..."); ``observed`` is whole.

    Frames follow ClusterFuzz's comparer (two common frames among the top ones count); the message is compared by
    its words in order, relative to the shorter text, because reports quote only part of it.
    """
    frames = _count_common_frames(reported.frames, observed.frames)
    both_crash = reported.type in NATIVE and observed.type in NATIVE
    same_type = _is_same_type(reported.type, observed.type, vocabulary)
    if not (same_type or (both_crash and frames) or _may_be_reprinted(reported, observed, vocabulary)):
        return Similarity(score=0.0, why=f"ended with {observed.type}, the report says {reported.type}")
    if both_crash:
        return _compare_crashes(reported, observed, frames, renames)
    if reported.type == observed.type == "timed-out":
        return _compare_hangs(reported, observed)
    arrays = parse_mismatch(reported.message), parse_mismatch(observed.message)
    if arrays[0] and arrays[1]:
        other = explain_difference(arrays[0], arrays[1])
        return Similarity(score=0.4 if other else 0.9, why=other or f"{arrays[0].kind} of arrays differ, as reported")
    words = _measure_word_overlap(
        *(split_tokens(_drop_own_names(one.message, renames)) for one in (reported, observed))
    )
    if other := _explain_difference(reported, observed, vocabulary, renames):
        return Similarity(score=min(0.5, words or 0.0), why=other)
    if words is None:  # one side has no message: only the type and the frames speak
        if not frames and split_tokens(reported.message) and not split_tokens(observed.message):
            return Similarity(score=0.4, why=f"{observed.type} without a word, the report has words")
        if frames is None:
            both_bare = not reported.message and not observed.message
            return Similarity(
                score=0.75 if both_bare else 0.7, why=f"the same {observed.type}; no message to compare"
            )
        return Similarity(score=0.75 if frames else 0.4, why=f"the same {observed.type}, {_describe_frames(frames)}")
    words = max(words, _measure_sentence_overlap(reported, observed, renames))
    score = words if frames is None else max(words, 0.85 * words + (0.15 if frames else 0.0))
    return Similarity(score=round(score, 3), why=f"{observed.type} whose message agrees to {words:.0%}")


def _explain_difference(
    reported: Signature, observed: Signature, vocabulary: FailureVocabulary, renames: Mapping[str, str] | None
) -> str | None:
    """Why the two are of different things, though their sentences may be alike; None where nothing says so."""
    return (
        _explain_other_operation(reported, observed, vocabulary, renames)
        or _explain_other_site(reported, observed, vocabulary)
        or _explain_other_subject(reported, observed, renames)
    )


_OPERATION = re.compile(r"'([a-z]\w*(?:\.[\w$]+)+)'")
"""As MLIR's diagnostics name it."""


def _explain_other_operation(
    reported: Signature, observed: Signature, vocabulary: FailureVocabulary, renames: Mapping[str, str] | None
) -> str | None:
    """A verifier's sentence is the same for every operation that breaks its rule: the operations tell them apart."""
    patterns = (_OPERATION,) if observed.type == "mlir-error" else vocabulary.subjects
    said, seen = (_find_operations(normalize_message(one.message, renames), patterns) for one in (reported, observed))
    if not said or not seen or said.keys() & seen.keys():
        return None
    return f"{observed.type} about {next(iter(seen))}, the report says {next(iter(said))}"


def _find_operations(message: str, patterns: Iterable[re.Pattern[str]]) -> dict[str, None]:
    return dict.fromkeys(found[found.lastindex or 0] for one in patterns for found in one.finditer(message))


def _explain_other_site(reported: Signature, observed: Signature, vocabulary: FailureVocabulary) -> str | None:
    """One sentence, checked in two functions: of an integer, or of a float; while folding a quotient, or a rest."""
    said, seen = reported.site, observed.site
    for old, new in vocabulary.site_renames:
        said, seen = said.replace(old, new), seen.replace(old, new)
    return f"raised in {observed.site}, in the report in {reported.site}" if said and seen and said != seen else None


_CONDITION = re.compile(  # as glog's CHECK macros and their descendants print it
    r"Check failed: (?P<c>.{1,300}?)(?: is false\b|\(<N> vs\. <N>\)|\(\S{1,80} vs\. \S{1,80}\)|: |$)"
)
_OPERAND = re.compile(r"[A-Za-z_][\w.]*")
_WORD = re.compile(r"[A-Za-z_]+")
_VALUE = re.compile(r"(?:u?int|b?float|bool|void|handle|None|True|False)\d*\w*$|\w+\.\w")
_OWN_NAME = re.compile(r"\b(global|function|symbol|variable|parameter|argument|buffer|block) '[\w.$-]{1,100}'")
"""What the testcase calls a thing of its own."""
_GIVEN = re.compile(r"\b[Hh]owever\b|\bbut\b|\bgot\b|\bwhile the\b|: ")


def _drop_own_names(message: str, renames: Mapping[str, str] | None) -> str:
    return _OWN_NAME.sub(r"\1", normalize_message(message, renames))


def _explain_other_subject(reported: Signature, observed: Signature, renames: Mapping[str, str] | None) -> str | None:
    """One sentence about two things: of the strides, or of the dilation; of an input, or of the output.

    A check's condition tells them apart, where no operand is in both. Else a word of what is required that stands
    where another one stood, all others being the same. What was given (behind "However" and the like), types and
    figures are no subject: they are the values of a testcase.
    """
    said, seen = (_drop_own_names(one.message, renames) for one in (reported, observed))
    conditions = [_CONDITION.search(text) for text in (said, seen)]
    if conditions[0] and conditions[1]:
        first, second = (set(_OPERAND.findall(found["c"].replace("<N>", ""))) for found in conditions if found)
        rest = [
            text[found.end() :].lstrip(" :)") for text, found in zip((said, seen), conditions, strict=True) if found
        ]
        told = {_GIVEN.split(text, maxsplit=1)[0] for text in rest}
        if first and second and not first & second and len(told) > 1:  # renamed operands leave the sentence alone
            return "a check of something else"
        if first != second and _has_other_words(*(_GIVEN.split(text, maxsplit=1)[0] for text in rest)):
            return "another condition, with another sentence"
    a, b = (TOKEN.findall(_GIVEN.split(text, maxsplit=1)[0])[:100] for text in (said, seen))
    changes = [one for one in SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if one[0] != "equal"]
    for tag, i, j, k, m in changes:
        if tag == "replace" and min(_count_plain_words(a[i:j]), _count_plain_words(b[k:m])) >= MIN_REPLACED:
            return f"says {' '.join(b[k:m])!r} where the report says {' '.join(a[i:j])!r}"
        if (j - i, m - k) == (1, 1) and len(changes) <= 2 and min(len(a), len(b)) > MIN_SENTENCE:
            old, new = a[i], b[k]
            if _WORD.fullmatch(old) and _WORD.fullmatch(new) and not _VALUE.match(old) and not _VALUE.match(new):
                return f"says {new!r} where the report says {old!r}"
    return None


def _measure_sentence_overlap(reported: Signature, observed: Signature, renames: Mapping[str, str] | None) -> float:
    """What agrees of the sentences behind two conditions: the code of a check is rewritten, its words are kept."""
    said, seen = (normalize_message(one.message, renames) for one in (reported, observed))
    first, second = _CONDITION.search(said), _CONDITION.search(seen)
    if not first or not second or first["c"] == second["c"]:
        return 0.0
    a, b = split_tokens(said[first.end() :]), split_tokens(seen[second.end() :])
    return (_measure_word_overlap(a, b) or 0.0) if min(len(a), len(b)) > MIN_SENTENCE else 0.0


_ASSIGNED = re.compile(r"\b\w+=(?:'[^']{0,200}'|[^\s,()]+(?:\([^()]{0,200}\)+)?)")


def _has_other_words(said: str, seen: str) -> bool:
    """Whether words of the sentence stand where others stood; ``name=value`` is a testcase's own."""
    a, b = (_WORD.findall(_ASSIGNED.sub("", text))[:100] for text in (said, seen))
    changes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return any(
        tag == "replace" and any(not _VALUE.match(w) for w in a[i:j]) and any(not _VALUE.match(w) for w in b[k:m])
        for tag, i, j, k, m in changes
    )


def _count_plain_words(words: list[str]) -> int:
    return sum(bool(_WORD.fullmatch(word)) and not _VALUE.match(word) for word in words)


MIN_REPLACED = 2
"""Words in a row that stand where as many others stood: another requirement. A report that is cut lacks words, it has
no others in their place."""
MIN_SENTENCE = 4
"""Words without which there is no sentence that a single word could turn into another's."""


_STEP = re.compile(r"step (\d{1,6}) ")


def _compare_hangs(reported: Signature, observed: Signature) -> Similarity:
    """Where the time was up; how much it was, and the step's arguments, say nothing."""
    said, seen = (_STEP.match(one.message) for one in (reported, observed))
    if said and seen and said[1] != seen[1]:
        return Similarity(score=0.4, why=f"still running in step {seen[1]}, in the report in step {said[1]}")
    frames = _count_common_frames(reported.frames, observed.frames)
    if frames == 0:
        return Similarity(score=0.5, why="still running, elsewhere in the compiler")
    return Similarity(score=0.75, why="still running when the time was up")


def _compare_crashes(
    reported: Signature, observed: Signature, frames: int | None, renames: Mapping[str, str] | None
) -> Similarity:
    words = _measure_word_overlap(split_tokens(reported.message, renames), split_tokens(observed.message, renames))
    if words is not None and words < SAME:
        return Similarity(score=words, why=f"{observed.type} with another message")
    if frames is not None:
        return Similarity(score=0.95 if frames else 0.3, why=f"{observed.type}, {_describe_frames(frames)}")
    if words is not None:
        return Similarity(score=0.9, why=f"{observed.type} with the same message")
    return Similarity(score=0.75, why=f"{observed.type}, as reported; no stack to compare")


def _may_be_reprinted(reported: Signature, observed: Signature, vocabulary: FailureVocabulary) -> bool:
    """True if a parser may have raised another part's exception as an error of its own, in the same words."""
    pair = (reported, observed)
    return any(one.type in vocabulary.diagnostic_errors for one in pair) and all(
        _PYTHON_TYPE.search(one.type) and len(split_tokens(one.message)) > MIN_SENTENCE for one in pair
    )


_PYTHON_TYPE = re.compile(r"(?<!^Assertion)Error$")


def _is_same_type(reported: str, observed: str, vocabulary: FailureVocabulary) -> bool:
    a, b = reported.rpartition(".")[2], observed.rpartition(".")[2]
    if a == "crash":
        return b in NATIVE
    return a == b or any({a, b} <= names for names in vocabulary.same_types)


def _count_common_frames(reported: tuple[str, ...], observed: tuple[str, ...]) -> int | None:
    """How many of the report's top five frames are in the probe's stack; None when either has none."""
    if not reported or not observed:
        return None
    seen = {_strip_frame(name) for name in observed}
    return sum(_strip_frame(name) in seen for name in reported[:5])


def _strip_frame(frame: str) -> str:
    """A frame without namespaces' anonymous parts, lambdas and template arguments, which differ between builds."""
    return re.sub(r"<.{0,300}>|\(anonymous namespace\)::|\$_\d+", "", frame)


def _describe_frames(common: int) -> str:
    return f"{common} of the reported frames in the stack" if common else "in none of the reported frames"


def _measure_word_overlap(reported: list[str], observed: list[str]) -> float | None:
    """Words in common, in order, as a share of the shorter side; None when either side has none.

    Compilers' sentences share their ordinary words ("expects the input tensors to have"), so that of longer messages
    runs of three words count as much as single ones.
    """
    if not reported or not observed:
        return None
    a, b = reported[:200], observed[:200]
    common = sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    shorter = min(len(a), len(b))
    if shorter < 4:  # contained in almost anything: then both sides must agree in length as well
        return common / max(len(a), len(b))
    share = common / shorter
    return share if shorter < 8 else (share + _measure_triple_overlap(a, b)) / 2


def _measure_triple_overlap(a: list[str], b: list[str]) -> float:
    """Runs of three words in common, as a share of the side that has fewer."""
    first, second = (set(zip(words, words[1:], words[2:], strict=False)) for words in (a, b))
    return len(first & second) / min(len(first), len(second))
