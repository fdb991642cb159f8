"""Rank the commits of a range by how related they are to a report and its runs: by words, dates and files. Pure.

The score is BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) over subject, body and
paths, with identifiers split into words. It is multiplied by priors that improve the ranking according to
``bench/suspects``: the date of the report, a subject about a fix, and a subject about a chore. Parts of the compiler
that the runs showed (``observed.py``) count as words, and so do the files that define them.

A user's error gets the same scores as a bug. Only a change of behaviour between two builds is evidence, so the
wording is "most related", and no commit is called a culprit.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from typing import Any, Literal

from bot.extract.types import Extraction
from bot.issue import Issue
from bot.suspects.observed import Part
from bot.suspects.related import SAME, TARGETS, WORDS_OF_PLATFORMS
from runners.core.protocol import Commit, Suspect
from runners.toolchains import TOOLCHAINS

MAX_SHOWN = 5
"""Commits shown: the right fix is among the first five in about nine of ten ranges."""
ZIPF = 1.9
"""Exponent of belief over rank, fitted on ranks of known fixes with leave-one-out."""
FLOOR = 0.05
"""Share of belief that is spread evenly over all commits. It limits the cost of a search with a wrong ranking."""
MAX_TEXT = 8_000
"""Characters of a report's prose that are read."""

Direction = Literal["introduced", "fixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuery:
    """The words of a report, and its date."""

    title: str
    text: str = ""
    """Message and frames of the failure, and prose. Its words count less than those of the title."""
    day: date | None = None
    number: int | None = None
    """The issue's number in the compiler's own tracker. None for other reports."""
    parts: tuple[Part, ...] = ()
    """The parts of the compiler that the runs showed, with their files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the score: BM25's usual ``k1`` and ``b``; the others were chosen on half of ``bench/data``."""

    k1: float = 1.2
    b: float = 0.75
    title: float = 2.0
    """A word of the title counts as this many words of the text."""
    subject: float = 2.0
    """A word of the subject counts as this many words of the body."""
    paths: float = 0.5
    part: float = 4.0
    """The whole name of a pass or function that the runs showed counts as this many words of the text."""
    source: float = 4.0
    """A commit that changes a file of a shown part counts as one with this many of the text's words."""
    named: float = 20.0
    """A commit that names the issue counts as one with this many of the text's words."""
    related: float = 1.0
    """Weight of a word that means the same in these compilers as a word of the report."""
    fixing: float = 1.4
    chore: float = 0.5
    elsewhere: float = 0.3
    """Factor for a commit that is for targets that the report does not name, while the report names another."""
    untimely: float = 0.1
    """Factor for a fix made before the report, or a cause made after it."""
    days: float = 15.0
    falling: float = 0.5
    """Timeliness falls as ``(1 + distance / days) ** -falling``: half of all fixes come within two weeks, some after
    a year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCommit:
    """One commit. Its score is 0 if it shares no word with the report, or cannot be related to it."""

    commit: Commit
    score: float
    why: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------- the report


def make_query(issue: Issue, extraction: Extraction, repository: str | None = None) -> ReportQuery:
    """Return the report's words: its title, its failure, its prose, and the compiler's names in its code.

    ``repository`` is the compiler's: commits name issues of its tracker by number.
    """
    claim = extraction.claim
    failure = [claim.signature.type, claim.signature.message, *claim.signature.frames[:8]] if claim.signature else []
    prose = _FENCE.sub("\n", issue.body[: 4 * MAX_TEXT])
    calls = sorted(set(_CALLED.findall(issue.body[: 4 * MAX_TEXT])))
    return ReportQuery(
        title=issue.title,
        text="\n".join([*failure, prose[:MAX_TEXT], *calls[:40]]),
        day=issue.created,
        number=issue.number if repository and issue.repository == repository else None,
    )


_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_COMMIT_WORDS = tuple(toolchain.REPORTS.commits for toolchain in TOOLCHAINS.values())
_CALLED = re.compile("|".join(pattern for words in _COMMIT_WORDS for pattern in words.name_patterns) or "(?!)")
"""Names in code that identify a part of a compiler: a pass, an importer, an operator, a flag."""


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
"""Words of every report and every commit, and parts of most paths."""


def split_words(text: str) -> list[str]:
    """Return the words of ``text`` in order: identifiers whole and in parts, lower case, stemmed."""
    return [word for word, _ in _split_with_origin(text)]


def _split_with_origin(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word with the identifier, or the part of an identifier, that it was taken from."""
    for written in _WORD.findall(_NOISE.sub(" ", text)):
        parts = _PARTS.findall(written)
        if len(parts) > 1:
            yield stem_word("".join(parts).lower()), written
        yield from ((stem_word(low), part) for part in parts if len(low := part.lower()) > 1 and low not in _STOP)


@lru_cache(maxsize=1 << 16)
def stem_word(word: str) -> str:
    """Return the stem of ``word``: ``bufferization`` and ``bufferize`` have the same."""
    return str(_open_stemmer().stemWord(word))


@cache
def _open_stemmer() -> Any:
    import snowballstemmer  # the stemmers of all languages: only answers that rank commits need them

    return snowballstemmer.stemmer("english")


# ------------------------------------------------------------------------------------------------- ranking

_DEFAULT = Weights()


def rank_commits(
    query: ReportQuery, commits: Sequence[Commit], direction: Direction, weights: Weights = _DEFAULT
) -> tuple[RankedCommit, ...]:
    """Return all commits, the most related first; commits of equal score keep their order."""
    sought = _weigh_words(query, weights)
    observed = " ".join(part.name for part in query.parts if not part.path)
    names = dict((*_split_with_origin(observed), *_split_with_origin(query.text), *_split_with_origin(query.title)))
    counts = [_count_words(commit, query, weights) for commit in commits]
    rarity = _compute_rarity(counts)
    mean = sum(sum(one.values()) for one in counts) / max(1, len(counts)) or 1.0
    undone = _find_undone(commits)
    targets = _name_targets(frozenset(split_words(f"{query.title}\n{query.text}")))
    ranked = []
    for commit, frequencies in zip(commits, counts, strict=True):
        parts = _score_words(frequencies, sought, rarity, mean, weights)
        prior, reasons = _weigh_commit(commit, query, sought, direction, weights)
        prior = 0.0 if commit.sha in undone else prior
        prior *= weights.elsewhere if targets and targets.isdisjoint(_find_targets(commit) or targets) else 1.0
        named = ("names the issue",) if _NAMED in parts else ()
        shown = (*named, *_describe_sources(commit, query.parts), *_describe_shared(parts, names), *reasons)
        why = shown if parts else ()
        ranked.append(RankedCommit(commit=commit, score=prior * sum(parts.values()), why=why))
    return tuple(sorted(ranked, key=lambda one: -one.score))


def _describe_sources(commit: Commit, parts: Sequence[Part]) -> tuple[str, ...]:
    """Name the changed file of the commit that belongs to the first part with such a file."""
    for part in parts:
        if changed := next((path for path in commit.paths if path in part.files), ""):
            name = changed.rpartition("/")[2]
            return (f"changes `{name}` of {part.role}" + ("" if part.path else f" `{part.name}`"),)
    return ()


def _describe_shared(parts: Mapping[str, float], names: Mapping[str, str]) -> tuple[str, ...]:
    words = [word for word in parts if " " not in word]
    by_weight = [names.get(word, word) for word in sorted(words, key=lambda word: -parts[word])]
    whole: list[str] = []
    for name in dict.fromkeys(by_weight):
        if len(whole) < 4 and not any(name.lower() in other.lower() for other in whole):
            whole.append(name)
    return ("in common: " + ", ".join(f"`{name}`" for name in whole),) if whole else ()


def _weigh_words(query: ReportQuery, weights: Weights) -> Mapping[str, float]:
    """Return the weight of each word of the report: logarithmic in its count, since outputs repeat words."""
    weighed = {word: 1.0 + math.log(times) for word, times in Counter(split_words(query.text)).items()}
    for word in dict.fromkeys(split_words(query.title)):
        weighed[word] = weighed.get(word, 0.0) + weights.title
    for part in query.parts:
        for word in split_words(part.name)[:1] if not part.path else ():
            weighed[word] = weighed.get(word, 0.0) + (1.0 if part.is_dispatch else weights.part)
    for word, weight in tuple(weighed.items()):
        for same in _map_related().get(word, ()):
            weighed[same] = max(weighed.get(same, 0.0), weights.related * weight)
    sources = {_SOURCE + part.name: weights.source for part in query.parts if part.files}
    return weighed | sources | {_NAMED: weights.named}


_SOURCE = "file of "
"""Prefix of a term for the files of a part. No word contains a space, and both terms do."""
_NAMED = "the issue"


@cache
def _map_related() -> Mapping[str, tuple[str, ...]]:
    """Return the stem of each word of reports, with the words that commits use for it."""
    return {
        stem_word(word): tuple(split_words(same))
        for related in (SAME, *(one.related for one in _COMMIT_WORDS))
        for word, same in related.items()
    }


def _names_issue(commit: Commit, number: int | None) -> bool:
    """True if the message names the issue by its number or address. Numbers of other repositories do not count."""
    if number is None:
        return False
    named = re.compile(rf"(?<![\w/])#{number}\b|/issues/{number}\b", re.ASCII)
    return named.search(f"{commit.subject}\n{commit.body}") is not None


def _count_words(commit: Commit, query: ReportQuery, weights: Weights) -> Mapping[str, float]:
    changed = frozenset(commit.paths)
    counts = {_SOURCE + part.name: 1.0 for part in query.parts if part.files & changed}
    if _names_issue(commit, query.number):
        counts[_NAMED] = 1.0
    paths = "\n".join(commit.paths[:60])
    for text, weight in ((commit.subject, weights.subject), (commit.body, 1.0), (paths, weights.paths)):
        for word, times in Counter(split_words(text)).items():
            counts[word] = counts.get(word, 0.0) + times * weight
    return counts


def _compute_rarity(counts: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """Return each word's inverse document frequency over the commits of the range."""
    commits_with = Counter(word for one in counts for word in one)
    return {word: math.log(1 + (len(counts) - n + 0.5) / (n + 0.5)) for word, n in commits_with.items()}


def _score_words(
    frequencies: Mapping[str, float],
    sought: Mapping[str, float],
    rarity: Mapping[str, float],
    mean: float,
    weights: Weights,
) -> Mapping[str, float]:
    """Return the part of the score of each word that report and commit have in common."""
    length = weights.k1 * (1 - weights.b + weights.b * sum(frequencies.values()) / mean)
    return {
        word: weight * rarity[word] * frequencies[word] * (weights.k1 + 1) / (frequencies[word] + length)
        for word, weight in sought.items()
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
    r"(?:^|/)(?:docs?|website|gallery|\.github|\.gitlab|ci|docker|jenkins|licenses|tests?|benchmarks?)/|(?:^|/)[A-Z_]+$"
    r"|\.(?:md|rst|png|svg|txt\.in|ipynb|gitignore|mailmap)$|(?:^|/)(?:CODEOWNERS|Jenkinsfile|\.pre-commit-config\.yaml)$"
)
"""Paths of files that users of the compiler neither compile, import nor run."""


def _weigh_commit(
    commit: Commit, query: ReportQuery, sought: Mapping[str, float], direction: Direction, weights: Weights
) -> tuple[float, tuple[str, ...]]:
    """Return a commit's factor besides its words, with reasons; 0 if the commit cannot be related."""
    if commit.paths and all(_INERT.search(path) for path in commit.paths):
        return 0.0, ()
    if _is_for_other_platforms(commit, sought):
        return 0.0, ()
    timely, reasons = _weigh_date(commit.day, query.day, direction, weights)
    if _CHORE.search(commit.subject):
        return weights.chore * timely, reasons
    if direction == "fixed" and _FIXING.search(commit.subject):
        return weights.fixing * timely, reasons
    return timely, reasons


_REVERT = re.compile(r'\s*Revert "(?P<subject>.*?)(?:\s*\(#\d+\))?"')
_PULL_REQUEST = re.compile(r"\s*\(#\d+\)\s*$")


def _find_undone(commits: Sequence[Commit]) -> frozenset[str]:
    """Return each commit that a later commit of the range reverts, and the revert. Together they change nothing."""
    applied: dict[str, str] = {}
    undone: set[str] = set()
    for commit in commits:
        subject = _PULL_REQUEST.sub("", commit.subject).strip()
        revert = _REVERT.match(subject)
        if revert is not None and (reverted := applied.pop(revert["subject"].strip(), "")):
            undone |= {reverted, commit.sha}
        else:
            applied[subject] = commit.sha
    return frozenset(undone)


def _is_for_other_platforms(commit: Commit, sought: Mapping[str, float]) -> bool:
    """True if all paths of the commit are for platforms that the report does not mention."""
    return bool(commit.paths) and all(
        any(part in path.lower().split("/") and not sought.keys() & known for part, known in _map_platforms().items())
        for path in commit.paths
    )


@cache
def _map_platforms() -> Mapping[str, frozenset[str]]:
    """Return the name of each platform's folder, with the related words of reports."""
    return {part: frozenset(split_words(known)) for part, known in WORDS_OF_PLATFORMS.items()}


_TARGETS = {
    target: frozenset((words + "".join(f" {one.targets.get(target, '')}" for one in _COMMIT_WORDS)).split())
    for target, words in TARGETS.items()
}
_TARGET_WORDS = frozenset().union(*_TARGETS.values())
_LABEL = re.compile(r"\[([^\[\]]{1,40})\]")


def _name_targets(words: frozenset[str]) -> frozenset[str]:
    """Return all words of the targets that a report names: by a word of that target alone, else by a shared word."""
    shared = {word for word in _TARGET_WORDS if sum(word in one for one in _TARGETS.values()) > 1}
    named = [one for one in _TARGETS.values() if (one - shared) & words] or [
        one for one in _TARGETS.values() if one & words
    ]
    return frozenset().union(*named)


def _find_targets(commit: Commit) -> frozenset[str]:
    """Return the words of targets in the labels of a commit, and in its paths if each of them has one."""
    labels = _find_words(" ".join(_LABEL.findall(commit.subject)))
    paths = [_find_words(path) for path in commit.paths]
    return labels.union(*paths) if all(paths) else labels


def _find_words(text: str) -> frozenset[str]:
    return _TARGET_WORDS.intersection(re.findall(r"[a-z]+\d*", text.lower()))


def _weigh_date(
    day: date, reported: date | None, direction: Direction, weights: Weights
) -> tuple[float, tuple[str, ...]]:
    """Return the factor for a commit's date, with reasons.

    A fix comes after the report, a cause before it, and both mostly close to it.
    """
    if reported is None:
        return 1.0, ()
    days = (day - reported).days if direction == "fixed" else (reported - day).days
    if days < -1:  # one day of tolerance: a report's date depends on a time zone
        return weights.untimely, ()
    side = "after" if direction == "fixed" else "before"
    reasons = (
        (f"{days} days {side} the report",) if 1 < days <= 30 else (f"just {side} the report",) if days <= 1 else ()
    )
    return (1 + max(0, days) / weights.days) ** -weights.falling, reasons


# ------------------------------------------------------------------------------------------------- suspects


def compute_beliefs(ranked: Sequence[RankedCommit]) -> dict[str, float]:
    """Return for each sha the probability that this commit is the right one. The sum is 1, and no probability is 0.

    Used as the prior of a search between the two ends of a range, and shown as the score of a suspect.
    """
    related = [one for one in ranked if one.score > 0]
    zipf = {one.commit.sha: (i + 1) ** -ZIPF for i, one in enumerate(related)}
    total = sum(zipf.values())
    even = (FLOOR if zipf else 1.0) / max(1, len(ranked))
    return {
        one.commit.sha: even + ((1 - FLOOR) * zipf[one.commit.sha] / total if one.commit.sha in zipf else 0.0)
        for one in ranked
    }


def select_suspects(query: ReportQuery, commits: Sequence[Commit], direction: Direction) -> tuple[Suspect, ...]:
    """Return at most ``MAX_SHOWN`` commits that share words with the report, the most related first."""
    ranked = rank_commits(query, commits, direction)
    beliefs = compute_beliefs(ranked)
    return tuple(
        Suspect(
            commit=one.commit.sha,
            subject=one.commit.subject,
            score=round(beliefs[one.commit.sha], 3),
            why=one.why,
        )
        for one in ranked[:MAX_SHOWN]
        if one.score > 0
    )
