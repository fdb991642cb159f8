"""The commits of a range most related to a report: a ranking of words, dates and files. Pure; it accuses nobody.

BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) over subject, body and paths, with
identifiers split into their words, and with priors that were measured to help (``bench/suspects``): the date of
the report, a subject that says fix, and a subject that says anything but. Words cannot tell a bug from a user's
error, and either reaches a high score: only a change of behaviour between two builds is evidence, so nothing here
names a culprit, and the wording is "most related".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal

import snowballstemmer

from bot.extract.types import Extraction
from bot.issue import Issue
from bot.suspects.related import SAME, WORDS_OF_PLATFORMS
from runners.core.protocol import Commit, Suspect
from runners.toolchains import TOOLCHAINS

MOST = 5
"""Shown at once: the right fix is among so many in about nine of ten ranges, and nobody reads more."""
ZIPF = 1.9
"""How belief falls with rank, fitted on ranks of known fixes, leaving one out."""
FLOOR = 0.05
"""Belief spread evenly over all commits: what bounds a search led by a ranking that is wrong."""
MOST_TEXT = 8_000

Direction = Literal["introduced", "fixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a report says, and when it was written."""

    title: str
    text: str = ""
    """Message and frames of the failure, and prose; a word of it counts less than one of the title."""
    day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """``k1`` and ``b`` are the usual ones of BM25. The others: chosen on half of the issues in ``bench/data``."""

    k1: float = 1.2
    b: float = 0.75
    title: float = 2.0
    """A word of the title counts as so many of the text's."""
    subject: float = 2.0
    """A word of the subject counts as so many of the body's."""
    paths: float = 0.5
    related: float = 1.0
    """A word that means in these compilers what one of the report's means."""
    fixing: float = 1.4
    chore: float = 0.5
    untimely: float = 0.1
    """Of a fix made before the report, or a cause that came after it."""
    days: float = 15.0
    falling: float = 0.5
    """Timeliness falls as ``(1 + days away / days) ** -falling``: half of all fixes come within two weeks, some after
    a year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One commit; its score is 0 when it shares no word with the report or cannot have to do with it."""

    commit: Commit
    score: float
    why: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------- the report


def query_of(issue: Issue, extraction: Extraction) -> Query:
    """What to look for: the title, the failure as it was read, the prose, and the compiler's names in the code."""
    claim = extraction.claim
    failure = [claim.signature.type, claim.signature.message, *claim.signature.frames[:8]] if claim.signature else []
    prose = _FENCE.sub("\n", issue.body[: 4 * MOST_TEXT])
    calls = sorted(set(_CALLED.findall(issue.body[: 4 * MOST_TEXT])))
    return Query(title=issue.title, text="\n".join([*failure, prose[:MOST_TEXT], *calls[:40]]), day=issue.created)


_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_COMMIT_WORDS = tuple(toolchain.REPORTS.commits for toolchain in TOOLCHAINS.values())
_CALLED = re.compile("|".join(pattern for words in _COMMIT_WORDS for pattern in words.name_patterns) or "(?!)")
"""Names in code that say which part of a compiler is meant: a pass, an importer, an operator, a flag."""


# ------------------------------------------------------------------------------------------------- words

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", re.ASCII)
_NOISE = re.compile(
    r"https?://\S+|\b[0-9a-f]{7,40}\b|^(?:signed-off-by|co-authored-by|change-id|reviewed-by|cc)\b.*$|\(?#\d+\)?"
    r"|0x[0-9a-f]+",
    re.IGNORECASE | re.MULTILINE,
)
_STOP = frozenset(
    re.findall(
        r"\w+",
        """
        the a an of in on to for and or is are was be it its this that with when from by as at not no if but so we
        you i can cannot could should would will may do does did done has have had than then there here which what who
        into use used using bug error fail failed fails failing failure fix fixed fixes issue problem crash crashes
        py cc cpp h hpp td mlir src include test tests python md txt errors line file lines
        """,
    )
)
"""Words of every report and every commit, and what paths are made of."""


def words(text: str) -> list[str]:
    """The words of ``text`` in order: identifiers whole and in parts, lower case, without endings."""
    return [word for word, _ in _words(text)]


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Each word with the identifier, or the part of one, that it was taken from."""
    for written in _WORD.findall(_NOISE.sub(" ", text)):
        parts = _PARTS.findall(written)
        if len(parts) > 1:
            yield stem("".join(parts).lower()), written
        yield from ((stem(low), part) for part in parts if len(low := part.lower()) > 1 and low not in _STOP)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """What ``word`` shares with its other forms: ``bufferization`` and ``bufferize`` are one word."""
    return str(_STEMMER.stemWord(word))


_STEMMER = snowballstemmer.stemmer("english")


# ------------------------------------------------------------------------------------------------- ranking

_DEFAULT = Weights()


def rank(
    query: Query, commits: Sequence[Commit], direction: Direction, weights: Weights = _DEFAULT
) -> tuple[Ranked, ...]:
    """Every commit of ``commits``, the most related first; equal ones as they came."""
    wanted = _wanted(query, weights)
    names = dict((*_words(query.text), *_words(query.title)))
    found = [_frequencies(commit, weights) for commit in commits]
    rarity = _rarity(found)
    mean = sum(sum(one.values()) for one in found) / max(1, len(found)) or 1.0
    ranked = []
    for commit, frequencies in zip(commits, found, strict=True):
        parts = _matches(frequencies, wanted, rarity, mean, weights)
        prior, reasons = _prior(commit, query, wanted, direction, weights)
        why = (_shared(parts, names), *reasons) if parts else ()
        ranked.append(Ranked(commit=commit, score=prior * sum(parts.values()), why=why))
    return tuple(sorted(ranked, key=lambda one: -one.score))


def _shared(parts: Mapping[str, float], names: Mapping[str, str]) -> str:
    telling = [names.get(word, word) for word in sorted(parts, key=lambda word: -parts[word])]
    whole: list[str] = []
    for name in dict.fromkeys(telling):
        if len(whole) < 4 and not any(name.lower() in other.lower() for other in whole):
            whole.append(name)
    return "in common: " + ", ".join(f"`{name}`" for name in whole)


def _wanted(query: Query, weights: Weights) -> Mapping[str, float]:
    """How much each word of the report counts; one repeated a hundred times in an output counts little more."""
    wanted = {word: 1.0 + math.log(times) for word, times in Counter(words(query.text)).items()}
    for word in dict.fromkeys(words(query.title)):
        wanted[word] = wanted.get(word, 0.0) + weights.title
    for word, weight in tuple(wanted.items()):
        for same in _SAME.get(word, ()):
            wanted[same] = max(wanted.get(same, 0.0), weights.related * weight)
    return wanted


_SAME = {
    stem(word): tuple(words(same))
    for related in (SAME, *(one.related for one in _COMMIT_WORDS))
    for word, same in related.items()
}


def _frequencies(commit: Commit, weights: Weights) -> Mapping[str, float]:
    found: dict[str, float] = {}
    paths = "\n".join(commit.paths[:60])
    for text, weight in ((commit.subject, weights.subject), (commit.body, 1.0), (paths, weights.paths)):
        for word, times in Counter(words(text)).items():
            found[word] = found.get(word, 0.0) + times * weight
    return found


def _rarity(found: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """Inverse document frequency over the commits of the range: what is rare *there* tells most."""
    seen = Counter(word for one in found for word in one)
    return {word: math.log(1 + (len(found) - n + 0.5) / (n + 0.5)) for word, n in seen.items()}


def _matches(
    frequencies: Mapping[str, float],
    wanted: Mapping[str, float],
    rarity: Mapping[str, float],
    mean: float,
    weights: Weights,
) -> Mapping[str, float]:
    """What each word that report and commit share adds to the score."""
    length = weights.k1 * (1 - weights.b + weights.b * sum(frequencies.values()) / mean)
    return {
        word: weight * rarity[word] * frequencies[word] * (weights.k1 + 1) / (frequencies[word] + length)
        for word, weight in wanted.items()
        if word in frequencies
    }


# ------------------------------------------------------------------------------------------------- priors

_FIXING = re.compile(
    r"\b(?:fix(?:e[sd]|ing)?|bug ?fix|hot ?fix|handle|correct|avoid|prevent|support|resolve)\b", re.I
)
_CHORE = re.compile(
    r"^\W*(?:docs?|ci|nfc|release|rfc|community|tests?|build|cmake|refactor|lint|infra|benchmark)s?\b"
    r"|\b(?:bump|integrate|upgrade|typo|tutorial|nfc|refactor|roll|cleanup)\b",
    re.I,
)
_INERT = re.compile(
    r"(?:^|/)(?:docs?|website|gallery|\.github|\.gitlab|ci|docker|jenkins|licenses)/|(?:^|/)[A-Z_]+$"
    r"|\.(?:md|rst|png|svg|txt\.in|ipynb|gitignore|mailmap)$|(?:^|/)(?:CODEOWNERS|Jenkinsfile|\.pre-commit-config\.yaml)$"
)
"""Paths of what is not compiled, imported or run by anyone who uses the compiler."""


def _prior(
    commit: Commit, query: Query, wanted: Mapping[str, float], direction: Direction, weights: Weights
) -> tuple[float, tuple[str, ...]]:
    """What speaks for a commit before its words do, and why; 0 when it cannot have to do with the failure."""
    if commit.paths and all(_INERT.search(path) for path in commit.paths):
        return 0.0, ()
    if _elsewhere(commit, wanted):
        return 0.0, ()
    timely, reasons = _timely(commit.day, query.day, direction, weights)
    if _CHORE.search(commit.subject):
        return weights.chore * timely, reasons
    if direction == "fixed" and _FIXING.search(commit.subject):
        return weights.fixing * timely, reasons
    return timely, reasons


def _elsewhere(commit: Commit, wanted: Mapping[str, float]) -> bool:
    """Whether all it touches is for platforms that the report does not mention."""
    return bool(commit.paths) and all(
        any(part in path.lower().split("/") and not wanted.keys() & known for part, known in _PLATFORMS.items())
        for path in commit.paths
    )


_PLATFORMS = {part: frozenset(words(known)) for part, known in WORDS_OF_PLATFORMS.items()}


def _timely(
    day: date, reported: date | None, direction: Direction, weights: Weights
) -> tuple[float, tuple[str, ...]]:
    """A fix comes after the report, mostly soon; what broke it came before, mostly not long."""
    if reported is None:
        return 1.0, ()
    days = (day - reported).days if direction == "fixed" else (reported - day).days
    if days < -1:  # a day's grace: a report's date is in somebody's time zone
        return weights.untimely, ()
    side = "after" if direction == "fixed" else "before"
    said = (
        (f"{days} days {side} the report",) if 1 < days <= 30 else (f"just {side} the report",) if days <= 1 else ()
    )
    return (1 + max(0, days) / weights.days) ** -weights.falling, said


# ------------------------------------------------------------------------------------------------- what it is for


def beliefs(ranked: Sequence[Ranked]) -> dict[str, float]:
    """How likely each commit is to be the one looked for, by its sha; they sum to 1 and none is 0.

    The prior of a search between the two ends of a range, and the score shown beside a suspect.
    """
    related = [one for one in ranked if one.score > 0]
    zipf = {one.commit.sha: (place + 1) ** -ZIPF for place, one in enumerate(related)}
    whole = sum(zipf.values())
    even = (FLOOR if zipf else 1.0) / max(1, len(ranked))
    return {
        one.commit.sha: even + ((1 - FLOOR) * zipf[one.commit.sha] / whole if one.commit.sha in zipf else 0.0)
        for one in ranked
    }


def suspects(query: Query, commits: Sequence[Commit], direction: Direction) -> tuple[Suspect, ...]:
    """At most ``MOST`` commits that share words with the report, the most related first."""
    ranked = rank(query, commits, direction)
    share = beliefs(ranked)
    return tuple(
        Suspect(
            commit=one.commit.sha,
            subject=one.commit.subject,
            score=round(share[one.commit.sha], 3),
            why=one.why,
        )
        for one in ranked[:MOST]
        if one.score > 0
    )
