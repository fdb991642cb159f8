"""Decide whether two signatures are the same failure. Pure.

The comparison uses the type, the message without the testcase's own values, the operation or function of a check, and
the compiler's frames. Every answer contains a reason in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

import msgspec

from runners.core.failure.array_mismatch import explain_difference, parse_mismatch
from runners.core.failure.normalize import TOKEN, describe_type, name_type, normalize_message, split_tokens
from runners.core.failure.parse import NATIVE
from runners.core.protocol import Signature
from runners.core.toolchain.failures import FailureVocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """``score`` is 0 … 1. Failures with at least ``SAME`` are the same. ``why`` is the reason, as a clause."""

    score: float
    why: str


SAME = 0.7


def compare_signatures(
    reported: Signature,
    observed: Signature,
    vocabulary: FailureVocabulary,
    renames: Mapping[str, str] | None = None,
) -> Similarity:
    """Measure how similar two failures are.

    ``reported`` may be partial (one line, cut by "..."); ``observed`` is complete. As in ClusterFuzz's comparer, only
    common frames among the top frames count. Messages are compared by their words in order. The score is relative to
    the shorter message, because reports quote only a part.
    """
    if elided := _ELIDED_CONDITION.match(reported.message):
        reported = msgspec.structs.replace(reported, message=reported.message[elided.end() :])
        sentence = drop_condition(observed.message) or observed.message
        observed = msgspec.structs.replace(observed, message=sentence)
    likeness = _compare_as_given(reported, observed, vocabulary, renames)
    if bool(_CONDITION.match(reported.message)) is bool(_CONDITION.match(observed.message)):
        return likeness
    # One side gives only the sentence: its author left out the condition, or its release prints none.
    said, seen = (
        msgspec.structs.replace(one, message=drop_condition(one.message) or one.message)
        for one in (reported, observed)
    )
    return max(likeness, _compare_as_given(said, seen, vocabulary, renames), key=lambda one: one.score)


def _compare_as_given(
    reported: Signature, observed: Signature, vocabulary: FailureVocabulary, renames: Mapping[str, str] | None
) -> Similarity:
    frames = _count_common_frames(reported, observed)
    if (left_out := _compare_left_out(reported, observed, vocabulary, frames)) is not None:
        return left_out
    both_crash = reported.type in NATIVE and observed.type in NATIVE
    same_type = _is_same_type(reported.type, observed.type, vocabulary)
    if both_crash and not same_type and _says_the_same(reported, observed, renames):
        why = f"{name_type(observed.type)} in place of {name_type(reported.type)}, with the same message"
        return Similarity(score=SAME, why=why)
    if not (same_type or (both_crash and frames) or _may_be_reprinted(reported, observed, vocabulary)):
        return Similarity(
            score=0.0, why=f"ends with {describe_type(observed.type)}, the report with {describe_type(reported.type)}"
        )
    if both_crash:
        return _compare_crashes(reported, observed, frames, renames)
    if reported.type == observed.type == "timed-out":
        return _compare_hangs(reported, observed)
    arrays = parse_mismatch(reported.message), parse_mismatch(observed.message)
    if arrays[0] and arrays[1]:
        other = explain_difference(arrays[0], arrays[1])
        return Similarity(score=0.4 if other else 0.9, why=other or f"{arrays[0].kind} of arrays differ, as reported")
    return _compare_messages(reported, observed, vocabulary, renames)


def _compare_left_out(
    reported: Signature, observed: Signature, vocabulary: FailureVocabulary, frames: int | None
) -> Similarity | None:
    """Compare a crash with a check that releases are built without. None for other failures."""
    if observed.type not in NATIVE:
        return None
    same_type = _is_same_type(reported.type, observed.type, vocabulary)
    silent = not same_type and frames is None and not observed.message
    if silent and is_left_out_assertion(reported, vocabulary):
        why = f"{name_type(observed.type)}, where the report fails an assertion that releases are built without"
        return Similarity(score=SAME, why=why)
    if any(one.search(reported.message) for one in vocabulary.left_out_diagnostics):
        why = f"{name_type(observed.type)}, where the report quotes a check that releases are built without"
        return Similarity(score=SAME, why=why)
    return None


def _compare_messages(
    reported: Signature,
    observed: Signature,
    vocabulary: FailureVocabulary,
    renames: Mapping[str, str] | None,
) -> Similarity:
    """Compare two errors of one type by their messages, and then by their frames."""
    frames = _count_common_frames(reported, observed)
    words = _measure_word_overlap(
        *(split_tokens(_drop_own_names(one.message, renames)) for one in (reported, observed))
    )
    if other := _explain_difference(reported, observed, vocabulary, renames):
        return Similarity(score=min(0.5, words or 0.0), why=other)
    if words is None:
        return _compare_without_words(reported, observed, frames)
    words = max(words, _measure_sentence_overlap(reported, observed, renames))
    if _is_first_clause(reported.message, observed.message):
        words = 1.0
    score = words if frames is None else max(words, 0.85 * words + (0.15 if frames else 0.0))
    return Similarity(score=round(score, 3), why=f"{name_type(observed.type)}, {words:.0%} of the message agree")


def _compare_without_words(reported: Signature, observed: Signature, frames: int | None) -> Similarity:
    """Compare two errors of which one has no message: only type and frames remain."""
    if not frames and split_tokens(reported.message) and not split_tokens(observed.message):
        return Similarity(score=0.4, why=f"{name_type(observed.type)} without a message, the report has one")
    if frames is None:
        both_bare = not reported.message and not observed.message
        return Similarity(
            score=0.75 if both_bare else 0.7, why=f"the same {name_type(observed.type)}; no message to compare"
        )
    return Similarity(
        score=0.75 if frames else 0.4, why=f"the same {name_type(observed.type)}, {_describe_frames(frames)}"
    )


def _explain_difference(
    reported: Signature, observed: Signature, vocabulary: FailureVocabulary, renames: Mapping[str, str] | None
) -> str | None:
    """Return how the subjects of two failures with similar messages differ. None if no difference is found."""
    return (
        _explain_other_operation(reported, observed, vocabulary, renames)
        or _explain_other_site(reported, observed, vocabulary)
        or _explain_other_subject(reported, observed, renames)
    )


_OPERATION = re.compile(r"'([a-z]\w*(?:\.[\w$]+)+)'")
"""An operation as MLIR's diagnostics name it."""


def _explain_other_operation(
    reported: Signature, observed: Signature, vocabulary: FailureVocabulary, renames: Mapping[str, str] | None
) -> str | None:
    """Return the differing operations of two messages.

    A verifier prints the same sentence for every operation that violates its rule.
    """
    patterns = (_OPERATION,) if observed.type == "mlir-error" else vocabulary.subjects
    first, second = (
        _find_operations(normalize_message(one.message, renames), patterns) for one in (reported, observed)
    )
    if not first or not second or first.keys() & second.keys():
        return None
    return f"{name_type(observed.type)} about {next(iter(second))}, in the report about {next(iter(first))}"


def _find_operations(message: str, patterns: Iterable[re.Pattern[str]]) -> dict[str, None]:
    return dict.fromkeys(found[found.lastindex or 0] for one in patterns for found in one.finditer(message))


def _explain_other_site(reported: Signature, observed: Signature, vocabulary: FailureVocabulary) -> str | None:
    """Return the differing functions that raised one message.

    Several checks may print the same sentence, such as those for an integer and for a float.
    """
    first, second = reported.site, observed.site
    for old, new in vocabulary.site_renames:
        first, second = first.replace(old, new), second.replace(old, new)
    differ = first and second and first != second
    return f"raised in {observed.site}, in the report in {reported.site}" if differ else None


FEWEST_WORDS = 3
"""Minimum number of words of a first clause. Shorter beginnings are common to many messages."""
_ELIDED_CONDITION = re.compile(r"^Check failed: (?:\.{3}|…)[: ]*")
"""The start of a quoted message whose author left out the condition of the check."""


def _is_first_clause(reported: str, observed: str) -> bool:
    """True if the quoted message is the beginning of the message, up to a punctuation mark."""
    rest = observed.removeprefix(reported.rstrip(" .:,"))
    return len(reported.split()) >= FEWEST_WORDS and rest != observed and re.match(r"[,:;.(]", rest) is not None


_CONDITION = re.compile(  # as printed by glog's CHECK macros and their descendants
    r"Check failed: (?P<c>.{1,300}?)(?: is false\b|\(<N> vs\. <N>\)|\(\S{1,80} vs\. \S{1,80}\)|: |$)"
)


def drop_condition(message: str) -> str:
    """Return the sentence after the condition of a failed check. Empty if the message contains no condition."""
    found = _CONDITION.match(message)
    return message[found.end() :].lstrip(" :)") if found else ""


_OPERAND = re.compile(r"[A-Za-z_][\w.]*")
_WORD = re.compile(r"[A-Za-z_]+")
_VALUE = re.compile(r"(?:u?int|b?float|bool|void|handle|None|True|False)\d*\w*$|\w+\.\w")
_OWN_NAME = re.compile(r"\b(global|function|symbol|variable|parameter|argument|buffer|block) '[\w.$-]{1,100}'")
"""A name that the testcase chose."""
_GIVEN = re.compile(r"\b[Hh]owever\b|\bbut\b|\bgot\b|\bwhile the\b|: ")


def _drop_own_names(message: str, renames: Mapping[str, str] | None) -> str:
    return _OWN_NAME.sub(r"\1", normalize_message(message, renames))


def _explain_other_subject(reported: Signature, observed: Signature, renames: Mapping[str, str] | None) -> str | None:
    """Return the differing subjects of two similar messages: strides or dilation, an input or the output.

    The conditions of two checks differ if they share no operand. Otherwise one word of the requirement must replace
    another while all other words agree. The given value (after "However" and the like), types and numbers do not
    count, because they depend on the testcase.
    """
    reported_text, observed_text = (_drop_own_names(one.message, renames) for one in (reported, observed))
    conditions = [_CONDITION.search(text) for text in (reported_text, observed_text)]
    if conditions[0] and conditions[1]:
        first, second = (set(_OPERAND.findall(found["c"].replace("<N>", ""))) for found in conditions if found)
        rest = [
            text[found.end() :].lstrip(" :)")
            for text, found in zip((reported_text, observed_text), conditions, strict=True)
            if found
        ]
        sentences = {_GIVEN.split(text, maxsplit=1)[0] for text in rest}
        if first and second and not first & second and len(sentences) > 1:  # operands were renamed
            return "another check"
        if first != second and _has_other_words(*(_GIVEN.split(text, maxsplit=1)[0] for text in rest)):
            return "another check with another message"
    a, b = (TOKEN.findall(_GIVEN.split(text, maxsplit=1)[0])[:100] for text in (reported_text, observed_text))
    changes = [one for one in SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if one[0] != "equal"]
    for tag, i, j, k, m in changes:
        if tag == "replace" and min(_count_plain_words(a[i:j]), _count_plain_words(b[k:m])) >= MIN_REPLACED:
            return f"the message has {' '.join(b[k:m])!r} instead of {' '.join(a[i:j])!r}"
        if (j - i, m - k) == (1, 1) and len(changes) <= 2 and min(len(a), len(b)) > MIN_SENTENCE:
            old, new = a[i], b[k]
            if _WORD.fullmatch(old) and _WORD.fullmatch(new) and not _VALUE.match(old) and not _VALUE.match(new):
                return f"the message has {new!r} instead of {old!r}"
    return None


def _measure_sentence_overlap(reported: Signature, observed: Signature, renames: Mapping[str, str] | None) -> float:
    """Return the overlap of the sentences after two conditions. The conditions change more often."""
    reported_text, observed_text = (normalize_message(one.message, renames) for one in (reported, observed))
    first, second = _CONDITION.search(reported_text), _CONDITION.search(observed_text)
    if not first or not second or first["c"] == second["c"]:
        return 0.0
    a, b = split_tokens(reported_text[first.end() :]), split_tokens(observed_text[second.end() :])
    return (_measure_word_overlap(a, b) or 0.0) if min(len(a), len(b)) > MIN_SENTENCE else 0.0


_ASSIGNED = re.compile(r"\b\w+=(?:'[^']{0,200}'|[^\s,()]+(?:\([^()]{0,200}\)+)?)")


def _has_other_words(reported_text: str, observed_text: str) -> bool:
    """True if words of one sentence replace words of the other. ``name=value`` is ignored."""
    a, b = (_WORD.findall(_ASSIGNED.sub("", text))[:100] for text in (reported_text, observed_text))
    changes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return any(
        tag == "replace" and any(not _VALUE.match(w) for w in a[i:j]) and any(not _VALUE.match(w) for w in b[k:m])
        for tag, i, j, k, m in changes
    )


def _count_plain_words(words: list[str]) -> int:
    return sum(bool(_WORD.fullmatch(word)) and not _VALUE.match(word) for word in words)


MIN_REPLACED = 2
"""Minimum number of consecutive words that others must replace. A truncated report only lacks words."""
MIN_SENTENCE = 4
"""A message needs more words than this for one replaced word to count as another subject."""


_STEP = re.compile(r"step (\d{1,6}) ")


def _compare_hangs(reported: Signature, observed: Signature) -> Similarity:
    """Compare the steps and frames in which two runs timed out. Time limit and arguments do not count."""
    reported_step, observed_step = (_STEP.match(one.message) for one in (reported, observed))
    if reported_step and observed_step and reported_step[1] != observed_step[1]:
        return Similarity(
            score=0.4, why=f"timed out in step {observed_step[1]}, in the report in step {reported_step[1]}"
        )
    frames = _count_common_frames(reported, observed)
    if frames == 0:
        return Similarity(score=0.5, why="timed out elsewhere in the compiler")
    return Similarity(score=0.75, why="timed out, as reported")


def _compare_crashes(
    reported: Signature, observed: Signature, frames: int | None, renames: Mapping[str, str] | None
) -> Similarity:
    words = _measure_word_overlap(split_tokens(reported.message, renames), split_tokens(observed.message, renames))
    if words is not None and words < SAME:
        return Similarity(score=words, why=f"{name_type(observed.type)} with another message")
    if frames is not None:
        return Similarity(
            score=0.95 if frames else 0.3, why=f"{name_type(observed.type)}, {_describe_frames(frames)}"
        )
    if words is not None:
        return Similarity(score=0.9, why=f"{name_type(observed.type)} with the same message")
    return Similarity(score=0.75, why=f"{name_type(observed.type)}, as reported; no stack to compare")


def _says_the_same(reported: Signature, observed: Signature, renames: Mapping[str, str] | None) -> bool:
    """True if two crashes print the same sentence. The signal that ends the process depends on the build."""
    words = [split_tokens(one.message, renames) for one in (reported, observed)]
    overlap = _measure_word_overlap(*words)
    return overlap is not None and overlap >= SAME and min(map(len, words)) > MIN_SENTENCE


def is_left_out_assertion(reported: Signature, vocabulary: FailureVocabulary) -> bool:
    """True for a failed C++ assertion that releases are built without. A release continues, often to a crash."""
    return reported.type in NATIVE and any(one.search(reported.message) for one in vocabulary.left_out_assertions)


def _may_be_reprinted(reported: Signature, observed: Signature, vocabulary: FailureVocabulary) -> bool:
    """True if one failure may be the other's exception, reprinted by a parser as its own error."""
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


def _count_common_frames(reported: Signature, observed: Signature) -> int | None:
    """Count the report's top five frames that are in the run's stack.

    None without comparable frames: a report that quotes only Python frames shares none with a native stack.
    """
    kinds = [{"::" in name for name in one.frames} for one in (reported, observed)]
    if not kinds[0] & kinds[1]:
        return None
    if reported.callees and reported.frames == reported.callees:  # the report's stack ends with its callees
        return int(_get_innermost_class(reported) == _get_innermost_class(observed))
    seen = {_strip_frame(name) for name in observed.frames}
    return sum(_strip_frame(name) in seen for name in reported.frames[:5])


def _get_innermost_class(signature: Signature) -> str:
    """Return the class of the innermost callee. Builds inline different methods of one class."""
    return _strip_frame(next(iter(signature.callees), "")).rpartition("::")[0]


def _strip_frame(frame: str) -> str:
    """Remove anonymous namespaces, lambdas and template arguments, which differ between builds."""
    return re.sub(r"<.{0,300}>|\(anonymous namespace\)::|\$_\d+", "", frame)


def _describe_frames(common: int) -> str:
    return f"with {common} of the reported frames" if common else "with none of the reported frames"


def _measure_word_overlap(reported: list[str], observed: list[str]) -> float | None:
    """Return the common words, in order, as a share of the shorter message. None if either message is empty.

    Compilers' messages share ordinary words ("expects the input tensors to have"). So in longer messages, sequences
    of three words count as much as single words.
    """
    if not reported or not observed:
        return None
    a, b = reported[:200], observed[:200]
    common = sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    shorter = min(len(a), len(b))
    if shorter < 4:  # such words occur in almost any message, so the lengths must agree as well
        return common / max(len(a), len(b))
    share = common / shorter
    return share if shorter < 8 else (share + _measure_triple_overlap(a, b)) / 2


def _measure_triple_overlap(a: list[str], b: list[str]) -> float:
    """Return the common sequences of three words, as a share of the message with fewer sequences."""
    first, second = (set(zip(words, words[1:], words[2:], strict=False)) for words in (a, b))
    return len(first & second) / min(len(first), len(second))
