"""The purpose of a code block, read from the heading and the sentence above the block."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from bot.extract.vocabulary import OTHER_IMPLEMENTATIONS, any_word


class IssueSection(StrEnum):
    STEPS = "steps"
    EXPECTED = "expected"
    ACTUAL = "actual"
    ENVIRONMENT = "environment"
    CONTEXT = "context"
    """Additional context, analysis, suggested fixes: rarely the repro."""
    OTHER = "other"


class Cue(StrEnum):
    """The role of a block, as announced by the sentence before the block."""

    REPRO = "repro"
    WORKS = "works"
    FAILS = "fails"
    EXPECTED = "expected"
    OUTPUT = "output"
    QUOTED = "quoted"
    """Library source, a generated dump, a suggested change: not the reporter's testcase."""
    NONE = "none"


@lru_cache(maxsize=1024)
def classify_heading(heading: str) -> IssueSection:
    """Return the section that a heading announces.

    A heading that begins with "expected" or "actual" is decided before `IssueSection.STEPS`. The heading "code that
    should work" still announces steps.
    """
    words = heading.strip()[:120]
    if re.match(r"\W*(?:expected|actual|observed)\b", words, re.I):
        return IssueSection.EXPECTED if re.match(r"\W*expected\b", words, re.I) else IssueSection.ACTUAL
    return next((section for section, pattern in _SECTIONS if pattern.search(words)), IssueSection.OTHER)


_SECTION_WORDS = (
    (IssueSection.STEPS, r"repro|steps|how to|script|minimal|example|code|test ?case|trigger|复现|再現|重现"),
    (IssueSection.EXPECTED, r"expect|should|desired|\bcorrect|期望|预期|期待"),
    (IssueSection.ENVIRONMENT, r"environment|version|platform|system info|setup|build info|环境|環境|版本"),
    (IssueSection.ACTUAL, r"actual|observed|what happen|error|output|log|trace|crash|result|got\b|实际|実際"),
    (
        IssueSection.CONTEXT,
        r"additional|context|analysis|root cause|fix|propos|solution|triage|component|note|work.?around",
    ),
)
_SECTIONS = [(section, re.compile(words, re.I)) for section, words in _SECTION_WORDS]


def read_heading_cue(heading: str) -> Cue:
    """Return the cue of a heading such as ``### Correct results``, which is above one of two variants."""
    words = heading.strip()
    if re.match(r"\W*(?:incorrect|wrong|bad|failing|broken|buggy|not working)\b", words, re.I):
        return Cue.FAILS
    if re.match(r"\W*(?:correct|working|good|passing)\b(?! behaviou?r| output$)", words, re.I):
        return Cue.WORKS
    return Cue.NONE


def read_cue(intro: str) -> Cue:
    """Return the cue of the text before a block.

    Only the last line counts: its last two sentences, or the last alone if that sentence ends with a colon.
    """
    last = _CODE_SPAN.sub(_hide_dots, intro.strip().rpartition("\n")[2][-400:])
    sentences = [s for s in re.split(r"(?<=[.!?])\s+", last) if s.strip()]
    announced = bool(sentences) and sentences[-1].rstrip().endswith(":")
    for text in reversed(sentences[-1:] if announced else sentences[-2:]):
        for cue, pattern in _CUES:
            if not pattern.search(text):
                continue
            if cue in (Cue.WORKS, Cue.EXPECTED) and _HOPE.search(text):
                continue
            if cue is Cue.EXPECTED and (_TWO_PARTS.search(text) or _OUTPUT_CLAUSE.search(text)):
                return Cue.OUTPUT
            if cue is Cue.WORKS and _SILENT.search(text):
                return Cue.FAILS
            return cue
    return Cue.NONE


_CODE_SPAN = re.compile(r"`[^`\n]{1,200}`")


def _hide_dots(span: re.Match[str]) -> str:
    """Return a code span such as `util.global` without dots, which would end a sentence."""
    return span[0].replace(".", "_")


_TWO_PARTS = re.compile(
    r"\b(?:first|top|upper|former)\b[^.\n]{1,80}\b(?:second|then|bottom|lower|latter|other|last)\b", re.I
)
"""Words for the parts of one block: "the first row is what we get, the second what it should be"."""
_OUTPUT_CLAUSE = re.compile(
    r"[,;] (?:but |and |yet |while |whereas |instead )?(?!(?:what|as|which|like|where|that|i\.e)\b)"
    rf"(?![^,;\n]*\b(?:expect|should|want|desired|correct|right|reference|old(?:er)?|previous|{OTHER_IMPLEMENTATIONS})\b)"
    r"[^,;\n]{0,60}\b(?:prints?|gives?|returns?|gets?|got|(?:result|value|number|output) (?:is|was)|is actually)\W*$",
    re.I,
)
"""The last clause announces the block: "I expect 2 of them, the printed number is"."""
_HOPE = re.compile(
    r"\b(?:expect(?:ed|ing|s)?|should|ought|hop(?:ed?|ing)|suppos\w+|would|want(?:ed)?)\b[^.\n]{0,40}"
    r"\b(?:work|run|pass|compile|build|succeed|be (?:fine|ok|accepted|supported))\b"
    r"|(?:\b(?:not|never|no longer)|n['’]t) (?:\w+ )?(?:works?|working|succeed)\s*[:.)]?\s*$"
    r"|\bno (?:errors?|warnings?)\b[^.\n]{1,12}\b(?:errors?|warnings?)\b",
    re.I,
)
"""An expectation, its opposite, or a fault without a message. None of them states that the block below works or
announces expected output."""
_SILENT = re.compile(
    r"(?:works?|passes|succeeds?|compiles|runs?|no (?:error|warning)s?)\b[^.\n]{0,60}[,;:)]? "
    r"(?:and|but|yet|however|though|still|while)\b(?![^.\n]*\b(?:above|previous|former"
    r"|(?:first|second|other|original) (?:one|version|variant|form|block|program|snippet|script|call))\b)"
    r"[^.\n]{0,60}\b(?:wrong|incorrect\w*|garbage|differs?|nans?|mismatch\w*|not (?:right|correct|the same))\b",
    re.I,
)
"""A failure without a message: each step succeeds, and the result is wrong."""
_CUE_WORDS = (
    (  # ``expected `7`, we see``: the last clause announces the block
        Cue.OUTPUT,
        r"[,;] (?:but |and |yet )?(?:we|i|it|one) (?:actually |now |only )?(?:sees?|saw|gets?|got|observed?|prints?"
        r"|gives?|returns?)\W*$",
    ),
    (
        Cue.OUTPUT,
        r"\b(?:rewrites?|turns?|converts?|lowers?|changes?|transforms?|tiles?|folds?)"
        r" (?:it|this|that|them|the \w{1,20}) (?:in)?to\b[^.\n]{0,80}:\W*$"
        r"|\b(?:becomes|turns into|ends up as|(?:is|gets) (?:converted|folded|lowered|rewritten|translated|turned)"
        r" (?:in)?to)\W*$",
    ),
    (Cue.OUTPUT, r"^\W*after(?:wards)?\W*(?:$|\(|`)"),  # the second of two programs: before, and after
    (
        Cue.OUTPUT,
        r"^\W*(?:the )?(?:results?|outputs?)"
        r"(?: (?:with|on|of|from|in|for)\b[^:\n]{0,60}| ?\([^()\n]{1,60}\))?\W*:\W*$",
    ),
    (
        Cue.OUTPUT,
        r"^\W*(?:the )?(?:(?:very )?(?:last|first)|relevant|interesting|important|offending)\b[^:\n]{0,20}"
        r"\b(?:(?:lines?|rows?|statement)"
        r"(?: (?:of|from|in)\b(?![^:\n]*\b(?:code|script|testcase|test)\b)[^:\n]{0,40})?"
        r"|(?:parts?|bits?|piece) (?:of|from) the (?:\w+ )?"
        r"(?:output|result|dump|log|ir|body|kernel|function))\W*:\W*$",
    ),
    (
        Cue.FAILS,
        r"^\W*(?:wrong|bad|broken|fail(?:s|ing)?|not ok(?:ay)?|ko|crash(?:es|ing)?|buggy)\W*$"
        r"|\((?:incorrect|wrong|fail(?:s|ing|ure)?|bad|broken|buggy|crash(?:es)?|not ok)\)\W*$",
    ),
    (
        Cue.WORKS,
        r"^\W*(?:right|correct|good|ok(?:ay)?|fine|works?|working|passes|passing)\W*$"
        r"|\((?:correct|right|good|ok|fine|works?|passes|expected)\)\W*$",
    ),
    (Cue.EXPECTED, r"^\W*(?:(?:but )?(?:instead of|rather than))\W*$"),
    (Cue.EXPECTED, r"\b(?:i|we)(?: would|['’]d)? (?:want|like|need)(?: to (?:see|get|have))?\W*$"),
    (
        Cue.QUOTED,
        r"\b(?:source code|implementation|definition|legaliz\w+"
        r"|the (?:relevant|following|related) (?:code|lines?|part)"
        rf"|defined (?:in|as|like)|in {any_word(lambda words: words.called)}'?s? (?:code|source)"
        r"|code (?:in|of|at|from) [`\[]|in `?[\w/]+/[\w/.]+`?|ships|shortened|looks? like this|generated|lowered"
        r"|after (?:the |applying |running )?(?:pass|lower|optim|legal|trans)"
        r"|\bIR (?:is|dump|after|before|looks|becomes)|\bdump(?:ed)?\b|suggest|propos|patch\b|could be changed"
        r"|fix(?:ed)? by|changing (?:it|this) to|pull request|root cause)",
    ),
    (
        Cue.WORKS,
        r"(?:this|that|it|following|one|version|variant|code|same|which|below)?[^.\n]{0,60}"
        r"\b(?:works? (?:fine|well|as expected|correctly|ok|properly)|works?\s*[:.)]?\s*$"
        r"|(?:is|are) (?:fine|ok|good)\b|no (?:error|problem|issue|crash)|passes\b|succeeds?\b"
        r"|runs? (?:fine|ok|well|without)|work-?around)",
    ),
    (
        Cue.EXPECTED,
        r"(?:^|\b)(?:expect(?:ed|s)?|should (?:be|print|give|return|have been)|desired|wanted)\b"
        r"|\bwhat (?:i|we|you|one|it) should (?:get|see|have|show|output|look like)\b"
        r"|\b(?:right|correct) (?:values?|results?|outputs?|answers?|numbers?)(?: (?:is|are|would be)\b|\W*$)",
    ),
    (
        Cue.OUTPUT,
        r"\b(?:outputs?|prints?|printed|gives?|generates|produces|yields|result(?:s|ed)? (?:is|in|are)|actual"
        r"|traceback|stack ?trace|error (?:message|log)|log\b|backtrace|then comes|(?:stop|fail|die)s? with"
        r"|errors? out|following error|errors? (?:is|are|as|below)|throws?|raises?|got|get|crash(?:es)? with)\b"
        r"[^.\n]{0,80}$",
    ),
    (
        Cue.FAILS,
        r"\b(?:this|that|it|following|one|version|but|code|below)\b[^.\n]{0,60}\b(?:fails?|crashes|breaks"
        r"|does ?n[o']t work|wrong|hangs?)\b",
    ),
    (
        Cue.REPRO,
        r"\b(?:repro(?:duc\w+)?|script|snippet|minimal|example|test ?case|run(?: it| this|ning)?\b"
        r"|my (?:module|code|model|input)|how i|i (?:build|run|call|compile)|whole file|save (?:it )?as|input"
        r"|consider|following (?:code|program|module|script|ir))",
    ),
)
_CUES = [(cue, re.compile(words, re.I)) for cue, words in _CUE_WORDS]
