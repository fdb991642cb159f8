"""Phrases of titles and sentences that show the kind of a failure."""

from __future__ import annotations

import re

from bot.extract.vocabulary import any_word
from runners.core.protocol import ClaimKind


def any_of(*words: str) -> re.Pattern[str]:
    """Return a pattern that matches one of these words, in upper or lower case."""
    return re.compile(rf"\b(?:{'|'.join(words)})", re.I)


MISMATCH = re.compile(
    r"Not equal to tolerance|Mismatched elements|Arrays are not (?:almost )?equal|Max absolute difference"
    rf"|Tensor-likes are not close|{any_word(lambda words: words.failures.mismatch_patterns)}"
)


_WITHOUT_OBJECT = r"\b(?=\s*(?:$|[^\w\s]|(?:and|or|but|when|if|for|on|in|at|from|to|with|after|until)\b))"
"""Text after ``return``: a call that never returns hangs; a call that never returns a negative number does not."""
HANG = any_of(
    *(r"hang(?:s|ing)?\b", r"dead-?lock", r"(?:gets?|is|be) stuck", r"endless(?:ly)?\b", r"takes? forever"),
    *(r"not terminating", r"never (?:terminates|finishes|ends|comes back)", rf"never returns{_WITHOUT_OBJECT}"),
    *(r"infinite(?:ly)? (?:loop|recurs)", r"(?:loops?|runs?) forever"),
    *(r"does(?: no|n[o'’])t (?:terminate|finish)", rf"does(?: no|n[o'’])t return{_WITHOUT_OBJECT}", r"not finish"),
    r"(?:compile|build|compilation) time explodes",
)
CRASH = any_of(
    *(r"seg(?:mentation)? ?fault", r"segv\b", r"sig(?:segv|abrt|fpe|ill|bus)\b", r"core ?dump"),
    *(r"crash(?:es|ed|ing)?\b", r"abort(?:s|ed)?\b(?! if)", r"heap corruption", r"double free", r"use.after.free"),
    *(r"stack overflow", r"bus error", r"illegal instruction", r"floating[ -]point exception", r"killed by sig"),
)
HARD_CRASH = any_of(
    *(r"seg(?:mentation)? ?fault", r"segv\b", r"sig(?:segv|abrt|fpe|ill|bus)\b", r"core ?dump", r"heap corruption"),
    *(r"double free", r"use.after.free", r"illegal instruction", r"floating[ -]point exception"),
)
SIGNALS = (
    ("SIGSEGV", any_of(r"seg(?:mentation)? ?fault", r"segv\b", r"sigsegv\b")),
    ("SIGTRAP", any_of("breakpoint trap", r"sigtrap\b")),
    ("SIGFPE", any_of(r"floating[ -]point exception", r"sigfpe\b")),
    ("SIGILL", any_of("illegal instruction", r"sigill\b")),
    ("SIGBUS", any_of("bus error", r"sigbus\b")),
    ("SIGABRT", any_of(r"aborted\b", r"sigabrt\b")),
)
"""The names that shells and people give to the signal that ended a program."""
_OCCASION = r"(?:run|time|try|trie|compilation|execution|invocation|attempt|launche?)s?\b"
"""Units that are repeated, in phrases on how often a failure occurs."""
SOMETIMES = any_of(
    *(r"sometimes\b", r"occasional(?:ly)?\b", r"intermittent(?:ly)?\b", r"sporadic(?:ally)?\b", r"flak(?:y|iness)\b"),
    *(r"non-?determinis\w+", r"now and (?:then|again)\b", r"once in a while\b", r"from time to time\b"),
    *(
        r"not (?:always|every time)\b",
        rf"every (?:second|third|other|few|\d+(?:st|nd|rd|th)?) (?:or \w+ )?(?:{_OCCASION}|calls?\b)",
    ),
    rf"(?:half|most|some|one|two|\d+ ?%) (?:of|in|out of) (?:the |all |my |\w+ )?{_OCCASION}",
    rf"(?:once|twice|one|two|three|\d+) (?:times? )?(?:in|of|out of) (?:\d+|two|three|four|five|ten) {_OCCASION}",
    *(
        r"times out of (?:\d+|two|three|four|five|ten)\b",
        rf"from (?:one )?{_OCCASION} to (?:the )?(?:next|{_OCCASION})",
    ),
    rf"(?:differ|var(?:y|ies)|change|inconsistent|unstable)\w* (?:\w+ ){{0,3}}between (?:\w+ )?{_OCCASION}",
    rf"(?:differs?|chang(?:es|ing)|var(?:y|ies)|unstable|inconsistent) (?:\w+ )?(?:with|on|in) each {_OCCASION}",
    rf"each {_OCCASION} (?:prints|gives|returns|computes|shows) (?:another|an?other|a different|different|other)\b",
    *(r"rarely\b", r"unpredictabl\w+", r"(?:race condition|data race)\b", r"not (?:reliably )?reproducible\b"),
    r"random(?:ly)? (?:fail|crash|hang|segfault|pass)\w*",
    *(r"(?:different|other) (?:result|output|value|number)s? (?:each|every) (?:time|run)\b", r"some runs\b"),
    *(r"at random\b", r"comes and goes\b", r"unstable (?:result|output)s?\b"),
)
"""Phrases for a failure that does not occur in every run."""
WRONG = any_of(
    *("wrong", r"in ?correct", "inaccura", r"mis-?match", "garbage", "trash", "inconsisten", r"mis-?compil"),
    *(r"numeric(?:al)?\b", r"(?:different|other) (?:result|output|value|answer|number|element)s?\b"),
    *(r"(?:results?|outputs?|values?) (?:differ|chang)", r"differs?\b", r"(?:is|are|was|were) different\b"),
    r"(?:not|\w{2,5}n['’]t) (?:(?:be|being|get|getting|all|always|fully|properly) )?(?:equal|match|the same|correct"
    r"|simplified|optimi[sz]ed|folded|eliminated|removed|idempotent|fused|hoisted|vectori[sz]ed|inlined|merged|canonicali[sz]ed)",
    *(r"un-?necessary", "redundant", "superfluous", r"sub-?optimal", "inefficient"),
    r"missed (?:\w+ )?(?:optimi[sz]ation|fusion|opportunit)",
    r"(?:cannot|can ?not|can['’]t|does ?n[o'’]t|fails? to) (?:generate|produce|print|emit|create|output|return)"
    r" (?:an? |the )?(?:valid|correct|right|proper|well-formed)\b",
    r"(?:generates?|produces?|prints?|emits?|outputs?) (?:an? )?(?:\w+ )?(?:invalid|ill-formed|malformed)\b",
    *("silently", r"does ?n[o'’]t match", r"NaNs?\b", r"all zero(?:e?s)?\b", r"far too (?:small|large|big)"),
    r"(?:is|are|was|were) not what (?:numpy|np|torch|pytorch|onnx ?runtime|i|we)\b",
    *(r"unexpected (?!error|exception|crash)", r"expected .{1,60} but (?:got|get)", "corrupt", "truncat"),
    *("transposed", "swapped", r"shifted\b", "reversed", "duplicated", r"off by (?:one|\d)", r"drop(?:s|ped)\b"),
    *(r"los(?:es|t|s)\b", "replaced by", "saturates?", "instead of", "correctness"),
    r"returns? (?:only )?(?:0|zeros?|zeroes)\b",
    r"should (?:be|have been|print|return|give|still|remain|keep|preserve)\b",
    *(r"(?:not|n[o'’]t|cannot) (?:be )?(?:\w+ ){0,2}correctly", "accuracy", "precision", r"ignor(?:es|ed|ing)?\b"),
    r"(?:cannot|can['’]?t|can not|could(?: not|n['’]t)|unable to|fail(?:s|ed)? to|does(?: not|n['’]t)|not able to)"
    r" (?:be )?(?:\w+ ){0,2}(?:fuse|simplif|eliminat|fold|inline|vectori[sz]|optimi[sz]|unroll|merge|hoist|prove\b)",
    *(r"mutat", r"modif(?:ies|ied) (?:its|the) input", "in.place", r"non-?determin", "from run to run", r"flaky"),
    r"overwrit",
)
_PASSES = (
    r"(?:work|compile|support|build|lower|legali[sz]e|translate|convert|import|parse|verify|load|link|bufferi[sz]e)\b"
)
"""Actions of a compiler, in a title which states that the action does not happen."""
ERROR = any_of(
    *(
        r"(?<!\bno )(?<!without )(?<!\bany )errors?\b",
        r"\w+Error\b",
        r"exceptions?\b",
        r"fail(?:s|ed|ure|ing)?\b",
        r"rais(?:es|ed)\b",
        r"throws?\b",
    ),
    *("assert", rf"does ?n[o'’]t {_PASSES}", "cannot", "can't", r"can ?not", "unable"),
    *("unsupported", "unimplemented", r"not (?:supported|implemented)", "invalid", r"refuse[sd]?\b", "reject"),
    *("out of memory", r"OOM\b", "recursion depth"),
)
NAMES_ERROR = any_of(
    *(r"errors?\b", r"\w+Error\b", r"exceptions?\b", r"fail(?:s|ed|ure|ing)?\b", r"rais(?:es|ed)\b", r"throws?\b"),
    *(
        "assert",
        rf"does ?n[o'’]t (?!support|work){_PASSES}",
        "unsupported",
        "unimplemented",
        r"refuse[sd]?\b",
        "reject",
    ),
)
"""A title that names an error. ``can't`` may mean anything."""
RAISES = re.compile(
    r"\b(?i:raises?|throws?|fails? with|crash(?:es)? with|gives?|returns?|ends? with) (?:an? )?[`'\"]?"
    r"(?:\w+\.)?(?:[A-Z]\w+(?:Error|Exception)|[A-Z]{2,20}(?:_[A-Z]{2,20})+)\b"
)
"""A title that names the exception or the status with which a run ends."""
SHOULD_WORK = any_of(
    r"should (?:work|compile|lower|legali[sz]e|run|be (?:supported|legal|handled|accepted|lowered|legali[sz]ed))\b"
)
"""A title which states what should be possible, and is not. In a sentence, such words are often a remark."""
SLOW = any_of(
    *(r"slow(?:er|ness|down|s down|ed down)?\b(?! path)", r"(?:performance|perf|latency|speed|compile.time) regress"),
    *(r"(?:compil\w*|build|run|execution|inference) times? (?:grow|grew|increase|double|went|go(?:es)? up)",),
    r"tak(?:es?|ing) (?:too long|(?:\w+ ){0,2}\d+(?:\.\d+)? ?(?:x|times) (?:as long|longer))",
    r"\d+(?:\.\d+)? ?(?:x|times) slower",
)
TIME_OF_COMPILING = any_of(
    r"compil\w*[ -]times?\b|compil\w+ (?:\w+ ){0,2}(?:takes?|took|needs?|gets?|is|was) ",
    r"(?:pass|passes|canonicali[sz]er?) (?:\w+ ){0,2}(?:takes?|took|runs? for|hangs?|never)",
    r"tak(?:es?|ing) (?:\w+ ){0,2}(?:\d|minutes|hours|seconds|forever|too long|very long)",
    r"(?:quadratic|exponential)(?:ly)?|blows? up",
)
"""Words on the time or memory of the compiler itself."""
MEMORY = any_of(
    *(r"memory leak", r"leaks? (?:\w+ )?memory", r"(?:peak|resident) (?:memory|RSS)", r"RSS\b"),
    *(r"memory (?:usage|use|consumption|footprint)", r"(?:uses|using|consumes|needs|takes|allocates) \S+ ?[MG]i?B\b"),
    r"too much memory",
)
ACCEPTS = any_of(
    r"(?:do(?:es)?(?: not|n['’]t)|did(?: not|n['’]t)|fail(?:s|ed)? to|never|without) (?:\w+ ){0,2}"
    r"(?:reject|refus|rais(?:e|ing)\b|throw|complain|diagnos|validat|error out"
    r"|(?:report|emit|giv|print)\w* (?:an? |any )?(?:error|exception))",
    r"no (?:error|exception|diagnostic)s?\b",
    r"(?:missing|no) (?:\w+ ){0,2}(?:errors?|validations?|checks?|checking|diagnostics?)\b",
    r"accept(?:s|ed|ing)? (?:an? )?(?:\w+ )?(?:invalid|illegal|ill-formed|malformed|wrong)",
    r"accept(?:s|ed|ing)? [^.\n]{0,60}\b(?:(?:that|which) do(?:es)?(?: not|n['’]t) exist|out of (?:range|bounds)"
    r"|mismatched|too (?:many|few|large|small))\b",
    r"(?:invalid|illegal|ill-formed|malformed)\b[^.\n]{0,60}\b(?:is|are|was|were|gets?) (?:silently )?accepted",
    r"should (?:have )?(?:raised?|throw|reject(?:ed)?|refused?|be (?:rejected|refused|an error))\b",
)
"""A title about a missing error. A program that the compiler accepts runs to its end, and so shows the failure."""
SHOULD_REFUSE = any_of(
    r"(?:should|must|ought to|expected \w+ to) (?:\w+ ){0,2}(?:raise\b|throw\b|reject\b|refuse\b|diagnose\b"
    r"|be (?:rejected|refused|an? (?:\w+ )?error)|have (?:raised|thrown|rejected|refused|been (?:rejected|refused))"
    r"|(?:report|emit|give|produce|print) (?:an? )?(?:\w+ ){0,2}(?:error|diagnostic|exception)\b)",
    r"there (?:should|must|ought to) be (?:an? )?(?:\w+ ){0,2}(?:error|diagnostic|exception)\b",
    r"expect(?:ed|ing|s)?:? (?:to (?:get|see) )?(?:an? )?(?:\w+ ){0,2}(?:error|exception|diagnostic)s?\b(?! message)",
)
"""A sentence which states that an error is the right result."""
SHOULD_END_BADLY = re.compile(
    r"\b(?:expect(?:ed|ing|s)?|should(?: have)?|want(?:ed)?|must)\b(?:(?!\bnot?\b|n['’]t\b)[^.\n]){0,60}?"
    r"(?:\bFAILED\b|\b(?:exit(?:s|ed)?(?: with)?(?: an?)?(?: code| status)?|return (?:code|status))(?: of)?"
    r" (?:[1-9]\d{0,2}\b|non-?zero))"
)
"""A sentence which asks that a tool reports a failure, or ends with a code other than 0."""
ENDS_WELL = re.compile(
    r"^[ \t]*(?:\$ .*|(?:(?:exit(?:ed)?|return|rc|status|code)[ \t:=]*){0,4}0)[ \t]*$", re.M | re.I
)
"""A command, or the exit code of a program that ends well, as ``echo $?`` prints it."""
STOPS = any_of(r"fail(?:s|ed|ure|ing)?\b", r"exit(?:s|ed)?\b", r"stops?\b", r"abort", r"killed\b")
HANDLES_ERRORS = re.compile(r"^[ \t]*except\b|\b(?:pytest\.)?raises\(|\bassertRaises|\bcontextlib\.suppress\(", re.M)
"""Code that ends well whether an error occurs or not."""
OUT_OF_MEMORY = any_of("out of memory", r"OOM\b", "bad_alloc", "runs out of memory")


NO_FAILURE = re.compile(
    r"\b(?:no|without(?: any)?|never|nor|(?:does|did|do|is|are|was)(?: not|n[o'’]t))\b"
    r"(?:[ ,/]+[\w`-]{1,40}){0,3}?[ ,/]+"
    r"(?:errors?|exceptions?|warnings?|complain\w*|crash\w*|fail\w*|throws?|rais(?:es?|ed)|thrown)\b"
    r"(?:[ ,/]+(?:or|and|nor)[ ,/]+(?:errors?|exceptions?|warnings?|crash\w*))?"
    r"(?:[ ,/]+(?:is|was|are|were|gets?)[ ,/]+(?:raised|thrown|reported|printed|given|shown))?",
    re.I,
)
"""Words which state that nothing fails: ``no warning or error is raised``."""
_ONCE = (
    r"\b(?:i|we) (?:even |also )?(?:once|occasionally|sometimes|at times) (?:even |also )?"
    r"(?:got|get|saw|see|had|have|hit)\b[^.!?\n]{0,200}"
)
ONCE = re.compile(_ONCE, re.I)
"""A remark on a run with another end: ``I once got a crash, too``."""
ASIDE = re.compile(rf"\([^()]{{1,400}}\)|{_ONCE}", re.I)
"""A remark beside the failure: ``(one process also died with SIGSEGV)``."""

REFUSED = any_of(
    r"verif(?:ier|ication)s?\b(?: then)? (?:rejects?|refuses?|fails?|complains?|errors?)\b",
    r"(?:rejected|refused) by the (?:\S+ )?(?:verifier|parser)\b",
)
STATIC_MISMATCH = any_of(
    r"(?:size|shape|type|dtype|rank|dimension|layout|operand|argument|attribute)s? mis-?match",
    r"mis-?match(?:ed|ing)? (?:\w+ )?(?:size|shape|type|dtype|rank|dimension|layout|operand|argument|attribute)s?\b",
)
RAISED = any_of(
    r"(?:rejects?|rejected|refused|refuses|fails?|failed|ends?|stops?|exits?)"
    r" with an? (?:\w+ )?(?:errors?|exceptions?)\b",
    r"(?:errors?|exceptions?) (?:is|are|was|were|gets?) (?:raised|thrown|reported|emitted)\b",
    r"(?:raises?|raised|throws?|threw|reports?|gives?|get|got) (?:an?|the following|this)"
    r" (?:\w+ )?(?:errors?|exceptions?)\b",
    r"fail(?:s|ed)? to (?:compile|build|lower|parse|verify)\b",
)
CUT_SHORT = re.compile(
    rf"^Traceback \(most recent call last\)|{any_word(lambda words: words.failures.unnamed_patterns)}", re.M
)
"""A failure quoted without the line that names the exception."""


TELLS_ERROR = re.compile(
    r"\b(?:error|exception)s?(?: message)? (?:says?|reads|tells|complains?|states|claims)\b"
    r"|\b(?:fails|stops|dies|ends|aborts) (?:with an? (?:\w+ ){0,2}(?:error|exception)|since|because)\b"
    r"|\b(?:fails|stops|dies|aborts) (?:in|inside|during) (?:the )?(?:`?[\w:-]{1,80}`? )?"
    r"(?:pass|lowering|legalization|conversion)\b",
    re.I,
)
"""A sentence that mentions an error without quoting it."""


IS_MEANT = re.compile(
    r"\b(?:error|exception|failure|message)s?(?: itself| themselves)?(?: here)?,? (?:is|are)"
    r" (?:(?:my|our) (?:own )?(?:doing|fault)|intended|intentional|deliberate|provoked|expected|right|correct|fine"
    r"|on purpose)\b"
    r"|\bthat (?:it|this|the (?:program|code|model|file|script|testcase|compilation|build))"
    r" (?:(?:does not|doesn[’']t|can ?not|can[’']t) (?:compile|run|build|work)|fails?(?: to compile)?"
    r"|is (?:refused|rejected))"
    r" is (?:fine|ok(?:ay)?|expected|intended|correct|right|not (?:the|my) (?:problem|issue|point|complaint))\b"
    r"|\b(?:provok|trigger|caus)\w* (?:it|this|that|an?|the|some|any)\b[^.\n]{0,40}\b(?:on purpose|deliberately)\b",
    re.I,
)
"""A sentence which states that the error is correct. The report is then about something else."""


KINDS = (
    (ClaimKind.CRASH, HARD_CRASH),
    (ClaimKind.HANG, HANG),
    (ClaimKind.WRONG_RESULT, WRONG),
    (ClaimKind.CRASH, CRASH),
    (ClaimKind.ERROR, ERROR),
    (ClaimKind.SLOW, SLOW),
    (ClaimKind.MEMORY, MEMORY),
)
"""Words on time and memory. In prose, they are checked last, because reports of all kinds mention them."""
TITLE_KINDS = (
    *(*KINDS[:2], (ClaimKind.SLOW, SLOW), (ClaimKind.MEMORY, MEMORY), *KINDS[2:]),
    (ClaimKind.ERROR, SHOULD_WORK),
)
COMES_OUT_AS_NAN = re.compile(
    r"\b(?:(?:give|return|produce|output|print|yield|become|get|compute)s?|is|are|=)\s+(?:all )?`?-?NaNs?\b"
    r"|(?:^|[:\]])\s*NaNs? (?:from|in|for|out of|after|when|on)\b(?! inputs?)",
    re.I,
)
"""A title which states that a result is NaN."""
STAYS_AS_IT_IS = re.compile(
    r"\b(?:stays?|remains?|(?:is |be |are )?(?:left|kept|leaves?|keeps?)(?: it| them| the \w{1,20})?|should be)"
    r" (?:exactly )?(?:as it is|as they are|as is|unchanged|untouched|unmodified|alone|as written|the same)\b"
    r"|\bshould (?:be a no-?op|not (?:change|touch|modify|rewrite) (?:it|this|anything|the \w{1,20}))\b",
    re.I,
)
"""A sentence which asks that a pass does not change its input."""
_TRANSFORMED = (
    r"(?:fus|fold|simplif|hoist|vectori[sz]|inlin|merg|unroll|til|eliminat|canonicali[sz]|promot|forward|combin|collaps"
    r"|optimi[sz]|reduc|sunk|sink|interchang|coalesc|distribut)\w*"
)
MISSES_TRANSFORMATION = any_of(
    rf"miss(?:es|ed|ing) (?:\w+ ){{0,2}}{_TRANSFORMED}",
    rf"(?:is|are|was|were|be|been|gets?|got)(?: not|n['’]t) (?:\w+ )?{_TRANSFORMED}",
    rf"(?:does|do|did)(?: not|n['’]t) (?:\w+ )?{_TRANSFORMED}",
    rf"(?:fails?|failed|unable|refuses?) to (?:\w+ )?{_TRANSFORMED}",
)
"""Words for a program that a pass should have changed."""
COMES_OUT_UNCHANGED = re.compile(
    r"\b(?:comes? (?:out|back)|came (?:out|back)|(?:is|are) left|stays?|remains?|prints?|returns?)\b[^.\n]{0,60}"
    r"\b(?:as (?:it|they) went in|as (?:it|they) (?:was|were)|unchanged|untouched|unmodified)\b"
    r"|\b(?:output|result|module|function|ir) (?:is|equals|looks) (?:exactly )?(?:the same as |identical to )?"
    r"the input\b"
    r"|\bnothing (?:at all )?(?:is|gets|was|has) (?:been )?(?:changed|rewritten|folded|done)\b",
    re.I,
)
"""A sentence which states that a pass returns its input unchanged."""
