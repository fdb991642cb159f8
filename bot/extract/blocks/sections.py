"""Issue-form headings and introductory sentences → what the code below them is for."""

from __future__ import annotations

import re
from enum import StrEnum

from bot.extract.vocabulary import any_word


class Section(StrEnum):
    STEPS = "steps"
    EXPECTED = "expected"
    ACTUAL = "actual"
    ENVIRONMENT = "environment"
    CONTEXT = "context"
    """Additional context, analysis, suggested fixes: rarely the repro."""
    OTHER = "other"


_SECTIONS = (
    (
        Section.STEPS,
        re.compile(r"repro|steps|how to|script|minimal|example|code|test ?case|trigger|复现|再現|重现", re.I),
    ),
    (Section.EXPECTED, re.compile(r"expect|should|desired|\bcorrect|期望|预期|期待", re.I)),
    (
        Section.ENVIRONMENT,
        re.compile(r"environment|version|platform|system info|setup|build info|环境|環境|版本", re.I),
    ),
    (
        Section.ACTUAL,
        re.compile(r"actual|observed|what happen|error|output|log|trace|crash|result|got\b|实际|実際", re.I),
    ),
    (
        Section.CONTEXT,
        re.compile(
            r"additional|context|analysis|root cause|fix|propos|solution|triage|component|note|work.?around", re.I
        ),
    ),
)


def section_of(heading: str) -> Section:
    """What a heading announces. ``Expected behavior`` before ``Steps``: "code that should work" is still steps."""
    words = heading.strip()[:120]
    if re.match(r"\W*(?:expected|actual|observed)\b", words, re.I):
        return Section.EXPECTED if re.match(r"\W*expected\b", words, re.I) else Section.ACTUAL
    return next((section for section, pattern in _SECTIONS if pattern.search(words)), Section.OTHER)


class Cue(StrEnum):
    """What the sentence before a block says the block is."""

    REPRO = "repro"
    WORKS = "works"
    FAILS = "fails"
    EXPECTED = "expected"
    OUTPUT = "output"
    QUOTED = "quoted"
    """Library source, a generated dump, a suggested change: not the reporter's testcase."""
    NONE = "none"


_CUES = (
    (
        Cue.FAILS,
        re.compile(
            r"^\W*(?:wrong|bad|broken|fail(?:s|ing)?|not ok(?:ay)?|ko|crash(?:es|ing)?|buggy)\W*$"
            r"|\((?:incorrect|wrong|fail(?:s|ing|ure)?|bad|broken|buggy|crash(?:es)?|not ok)\)\W*$",
            re.I,
        ),
    ),
    (
        Cue.WORKS,
        re.compile(
            r"^\W*(?:right|correct|good|ok(?:ay)?|fine|works?|working|passes|passing)\W*$"
            r"|\((?:correct|right|good|ok|fine|works?|passes|expected)\)\W*$",
            re.I,
        ),
    ),
    (Cue.EXPECTED, re.compile(r"^\W*(?:(?:but )?(?:instead of|rather than))\W*$", re.I)),
    (
        Cue.QUOTED,
        re.compile(
            r"(?:source code|implementation|definition|legaliz\w+|the (?:relevant|following"
            r"|related) (?:code|lines?|part)"
            rf"|defined (?:in|as|like)|in {any_word(lambda words: words.called)}'?s? (?:code|source)"
            r"|code (?:in|of|at|from) [`\[]|in `?[\w/]+/[\w/.]+`?"
            r"|ships|shortened|looks? like this|generated|lowered|after (?:the |applying |running )?(?:pass"
            r"|lower|optim|"
            r"legal|trans)|\bIR (?:is|dump|after|before|looks|becomes)|\bdump(?:ed)?\b|suggest|propos|patch\b"
            r"|could be changed|fix(?:ed)? by"
            r"|changing (?:it|this) to|pull request|root cause)",
            re.I,
        ),
    ),
    (
        Cue.WORKS,
        re.compile(
            r"(?:this|that|it|following|one|version|variant|code|same|which|below)?[^.\n]{0,60}"
            r"\b(?:works? (?:fine|well|as expected|correctly|ok|properly)|works?\s*[:.)]?\s*$|(?:is"
            r"|are) (?:fine|ok|good)\b"
            r"|no (?:error|problem|issue|crash)|passes\b|succeeds?\b|runs? (?:fine|ok|well|without)|work-?around)",
            re.I,
        ),
    ),
    (
        Cue.EXPECTED,
        re.compile(r"(?:^|\b)(?:expect(?:ed|s)?|should (?:be|print|give|return|have been)|desired|wanted)\b", re.I),
    ),
    (
        Cue.OUTPUT,
        re.compile(
            r"\b(?:outputs?|prints?|printed|gives?|result(?:s|ed)? (?:is|in|are)|actual|traceback"
            r"|stack ?trace|error (?:message|log)"
            r"|log\b|backtrace|then comes|stops? with|fails? with|dies? with|errors? out|following error"
            r"|error(?:s)? (?:is|are|as|below)"
            r"|throws?|raises?|got|get|crash(?:es)? with)\b[^.\n]{0,80}$",
            re.I,
        ),
    ),
    (
        Cue.FAILS,
        re.compile(
            r"\b(?:this|that|it|following|one|version|but|code|below)\b[^.\n]{0,60}\b(?:fails?|crashes"
            r"|breaks|does ?n[o']t work|wrong|hangs?)\b",
            re.I,
        ),
    ),
    (
        Cue.REPRO,
        re.compile(
            r"\b(?:repro(?:duc\w+)?|script|snippet|minimal|example|test ?case|run(?: it| this|ning)?\b"
            r"|my (?:module|code|model|input)"
            r"|how i|i (?:build|run|call|compile)|whole file|save (?:it )?as|input|consider"
            r"|following (?:code|program|module|script|ir))",
            re.I,
        ),
    ),
)


def heading_cue(heading: str) -> Cue:
    """``### Correct results`` above one variant and ``### Incorrect results`` above the other."""
    for cue, pattern in _HEADING_CUES:
        if pattern.match(heading.strip()):
            return cue
    return Cue.NONE


_HEADING_CUES = (
    (Cue.FAILS, re.compile(r"\W*(?:incorrect|wrong|bad|failing|broken|buggy|not working)\b", re.I)),
    (Cue.WORKS, re.compile(r"\W*(?:correct|working|good|passing)\b(?! behaviou?r| output$)", re.I)),
)


def cue_of(intro: str) -> Cue:
    """What the last words before a block announce; only the last sentence or line counts."""
    last = intro.strip().rpartition("\n")[2] if intro.strip() else ""
    last = last[-400:]
    sentences = [s for s in re.split(r"(?<=[.!?])\s+", last) if s.strip()]
    announced = bool(sentences) and sentences[-1].rstrip().endswith(":")
    for text in reversed(sentences[-1:] if announced else sentences[-2:]):
        for cue, pattern in _CUES:
            if pattern.search(text):
                return cue
    return Cue.NONE
