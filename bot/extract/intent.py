"""Distinguish a failure report from a question, a request, a discussion, and trouble with a build or a CI job.

Each piece of evidence has points for one kind of text. Points for a failure come from the parts that only a failure
report has: a quoted failure, a section on actual behaviour, a label for bugs. The kind with the most points wins.

On a tie, a text with code or output is a failure report, because a missed report costs more than a useless run. A
text without code or output cannot be run. The only answer would be a request for a testcase, which is noise on a plan
or a discussion. Such a text must state that something fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.links import find_links, find_stored_files
from bot.extract.parsed_issue import ParsedIssue
from bot.extract.types import Intent
from runners.core.failure.api_drift import find_moved_name
from runners.core.protocol import Claim, ClaimKind, Signature
from runners.toolchains import find_toolchain

MAX_TEXT = 20_000
"""Largest number of characters of prose that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Evidence for an intent. ``points``: 1 is a hint, 2 is usual, 4 decides against any hint."""

    intent: Intent
    points: int
    pattern: re.Pattern[str]


def _mark(intent: Intent, points: int, words: str) -> Mark:
    return Mark(intent=intent, points=points, pattern=re.compile(words, re.I))


_TAG = r"^\W{0,3}(?:\[[^\]]{1,40}\]\s*){0,4}\[?\s*"
"""The start of a title: any tags, then a word that may be a tag itself."""

TITLE_MARKS = (
    _mark(Intent.FAILURE, 2, r"\[\s*bug\b|\bbug\s*\]|^bug\b"),
    _mark(Intent.FAILURE, 2, r"\b(?:crash|segfault|segmentation fault|hang|wrong (?:result|code|output)|miscompil)"),
    _mark(
        Intent.FAILURE, 3, r"\b(?:slower|slow-?down|(?:very|too|extremely|really) slow|regress(?:ion|ions|es|ed)?)\b"
    ),
    _mark(
        Intent.FAILURE,
        1,
        r"\b(?:fails?|failed|failure|errors?|exception|incorrect|broken|can(?:no|')t|unable"
        r"|wrong(?:ly)?|inaccurate|mismatch(?:es)?)\b"
        r"|(?:[:\]] ?|^|\b(?:raises?|throws?|with|gives?|gets?|hits?) (?:an? )?)[`'\"]?\w{1,40}(?:Error|Exception)\b",
    ),
    _mark(Intent.FEATURE, 4, rf"{_TAG}(?:rfc|pre-?rfc|proposal|discuss(?:ion)?|feature[ -]request|feature|wish)\b"),
    _mark(Intent.FEATURE, 4, r"\[(?:rfc|proposal|discuss(?:ion)?|feature request|feature)\]"),
    _mark(
        Intent.FEATURE,
        2,
        rf"{_TAG}(?:add|support|implement|allow|enable|consider|perhaps|investigate|explore|refactor|rename"
        r"|migrate|re-?enable|deprecate|retire|remove|drop|switch|move|improve|introduce|provide|extend|unify"
        r"|clean ?up|replace"
        r"|make|use|integrate|expose|upgrade|bump|convert|create|define|design|generalize|plumb|teach|build|port|write"
        r"|split|merge|rework|simplify|finish|delete|adopt)\b",
    ),
    _mark(Intent.FEATURE, 3, r"^\W*(?:\w+ ){1,2}requests?\W*:|\[(?:\w+ ){0,2}requests?\]"),
    _mark(Intent.FEATURE, 2, r"\b(?:would be (?:nice|great|good)|feature request|support for|should we|let'?s)\b"),
    _mark(Intent.TRACKING, 4, rf"{_TAG}(?:tracking|epic|roadmap|milestone|meta|umbrella|task list|todo|release)\b"),
    _mark(
        Intent.TRACKING,
        4,
        r"\b(?:tracking (?:issue|bug)|roadmap|release (?:plan|schedule|checklist|candidate)|vote)\b",
    ),
    _mark(Intent.QUESTION, 2, r"\?\W*$"),
    _mark(Intent.QUESTION, 4, rf"{_TAG}(?:question|help(?: wanted)?|support question)\b\W"),
    _mark(
        Intent.QUESTION,
        3,
        rf"{_TAG}(?:how (?:to|do|can|should)|is (?:there|it possible)|can (?:i|we|you)|what|where)\b"
        r"|^[^:]{1,60}: (?:how (?:to|do|can|should) (?:i|we|one)|is it possible)\b",
    ),
    _mark(Intent.DOCUMENTATION, 4, rf"{_TAG}docs?(?:umentation)?\b"),
    _mark(
        Intent.DOCUMENTATION,
        3,
        r"\b(?:tutorial|documentation|docstring|doc page|docs|readme|broken link|typo|website)\b"
        r"|\b(?:wrong|incorrect|outdated|missing|broken) (?:code )?examples? (?:for|in|of|on|at)\b",
    ),
    _mark(
        Intent.BUILD,
        3,
        r"\b(?:build(?:ing)? (?:error|fail\w*|issue|problem|broken)|(?:fail\w*|error|unable|cannot|can't) to build"
        r"|fail\w* (?:when|while|during) (?:the )?build\w*|build(?:ing)? from source|cmake|bazel|docker(?:file)?"
        r"|pip install|install(?:ation|ing)?|wheel|conda|packag(?:e|es|ing)|release packages?|build and run)\b",
    ),
    _mark(
        Intent.BUILD,
        3,
        r"\b(?:ci|github actions?|jenkins|workflow|nightly (?:build|job)|presubmit|postsubmit)\b"
        r"|\b(?:actions?|jobs?|runners?|builders?|pipelines?) (?:is |are )?(?:broken|failing|flaky|red|timing out)",
    ),
    _mark(Intent.BUILD, 3, r"(?:^|[\s`])[\w/.-]*tests?/[\w/.-]+\.(?:py|cc|mlir)\b.*\b(?:flak|fail|broken|disabled)"),
    _mark(Intent.BUILD, 4, r"\[(?:ci|ci problem|flaky test|build|cmake|docker)\]"),
)

_BUILDS_CHECKOUT = (
    r"\bpip3? install (?:-[\w-]+ ){0,8}\.(?:/[\w/.-]*)?(?:[\s`]|$)|\bcmake (?:-\S{1,200} ){0,20}\.\.(?:[\s`]|$)"
)
"""A command by which the compiler is built in a checkout, and installed from it."""

REQUEST = re.compile(
    rf"{_TAG}(?:add|support|implement|allow|enable|consider|introduce|provide|extend|expose)\b", re.I
)
"""A title that asks for something in the imperative."""

LABEL_MARKS = (
    _mark(Intent.FAILURE, 2, r"^(?:type:\s*)?bug\b"),
    _mark(Intent.FEATURE, 2, r"^(?:type:\s*)?(?:enhancement|feature|rfc|proposal|improvement)"),
    _mark(Intent.FEATURE, 1, r"performance"),  # a lack of speed may be a wish or a fault: the words decide
    _mark(Intent.TRACKING, 4, r"tracking|epic|roadmap"),
    _mark(Intent.QUESTION, 2, r"question|^support\b|help wanted: question"),
    _mark(Intent.DOCUMENTATION, 3, r"^(?:type:\s*)?doc(?:s|umentation)?\b"),
    _mark(Intent.BUILD, 3, r"^dev:ci|test: ?flaky|^ci\b|\bci/|infrastructure|cmake|build[- ]system|packaging|docker"),
)

HEADING_MARKS = (
    _mark(Intent.FAILURE, 2, r"^(?:actual|observed|current) (?:behaviou?r|result|output)|^what happened|^error\b"),
    _mark(Intent.FAILURE, 1, r"^(?:steps to )?reproduc\w+|^to reproduce|^expected (?:behaviou?r|result|output)"),
    _mark(
        Intent.FEATURE,
        3,
        r"^request description|^proposal|^motivation|^feature|^describe the solution|^what you want",
    ),
    _mark(Intent.TRACKING, 3, r"^task ?list|^tasks?\b|^todos?\b|^milestones?\b|^progress\b|^(?:sub-?)?items\b"),
)

ON_PURPOSE = (
    r"\b(?:taken out|removed|dropped|deleted|retired) (?:on purpose|deliberately|intentionally|by design)\b"
    r"|\b(?:deliberately|intentionally|purposely) (?:taken out|removed|dropped|deleted|retired)\b"
    r"|\b(?:renamed|removed|dropped|taken out|retired)\b[^.?!\n]{0,40}\b(?:on purpose|deliberate(?:ly)?"
    r"|intentional(?:ly)?|intended)\?"
)
"""Words on a removal or a new name that the author knows to be intended, or asks about."""
DISCLAIMS = (
    r"\bnot (?:complaining|a complaint|a bug report|reporting (?:a|any) (?:bug|problem))\b|\bno complaints?\b"
    r"|\b(?:i|we) (?:assume|guess|suppose|understand|take it)(?: that)? (?:it|this|that|the (?:change|removal))"
    r"(?:['’]s| is| was) (?:intentional|intended|deliberate|by design|on purpose)\b"
)
"""Words of an author who reports no fault."""

PROSE_MARKS = (
    _mark(
        Intent.FAILURE,
        2,
        r"\breproduc(?:e|es|ed|ing) (?:the|this|that) (?:bug|failure|issue|error|problem|crash)\b"
        r"|\b(?:expos|uncover|reveal)(?:e|es|ed|ing) (?:the|this|a) bug\b",
    ),
    _mark(
        Intent.FEATURE,
        1,
        r"\b(?:(?:would|['’]d) be (?:nice|great|good|useful|handy|convenient|helpful)|feature request|i propose"
        r"|we should"
        r"|we could)\b",
    ),
    _mark(
        Intent.FEATURE,
        2,
        r"\bwould (?:make|help|allow|let|enable|simplify|improve|reduce|save)\b[^.?!\n]{0,80}"
        r"\b(?:easier|simpler|faster|possible|users?|people|us|everyone|time|maintenance)\b",
    ),
    _mark(
        Intent.FEATURE,
        3,
        r"\b(?:on purpose|deliberately|intentionally) (?:to (?:show|demonstrate|trigger|get)|so that)\b",
    ),
    _mark(
        Intent.FEATURE,
        2,
        r"\b(?:would|is) (?:a|the) (?:pr|patch|pull request|contribution) (?:be )?(?:welcome|accepted|ok(?:ay)?)\b",
    ),
    _mark(
        Intent.FEATURE,
        1,
        r"\b(?:request(?:ing)? (?:support|a feature)|please (?:add|support|consider)"
        r"|(?:could|can|would) (?:you|someone|anyone|the (?:team|maintainers))(?: please| kindly| also)?"
        r" (?:add|provide|include|offer|support|consider|publish)"
        r"|can be retired)\b",
    ),
    _mark(
        Intent.QUESTION,
        2,
        r"\b(?:i (?:would|'d) like to (?:know|ask|understand)|how (?:can|do|should|to) (?:i|we|one)\b"
        r"|is there (?:a|any|some) (?:way|example|doc|plan)|some questions?\b|i(?:'m| am) wondering)",
    ),
    _mark(
        Intent.QUESTION,
        2,
        r"\b(?:i|we)(?:['’]d| would| just)? (?:want(?:ed)?|like|wish|try|tried|am trying|are trying) to"
        r" (?:ask|know|understand|learn|find out|figure out|determine)\b"
        r"|\b(?:is|was) (?:my|our|this|that) (?:understanding|assumption|reasoning) (?:correct|right|true)\b",
    ),
    _mark(Intent.QUESTION, 2, r"\b(?:just|only|simply|merely) (?:a|some|one) (?:quick |small |short )?questions?\b"),
    _mark(Intent.QUESTION, 4, r"\bquestions?\b.{0,20}\bnot (?:a |any )?(?:bug|issue|error)\b"),
    _mark(Intent.QUESTION, 4, DISCLAIMS),
    _mark(Intent.QUESTION, 3, ON_PURPOSE),
    _mark(
        Intent.QUESTION,
        2,
        r"\bwhat(?:['’]s| is| are) the (?:intended|recommended|official|right|new)"
        r" (?:replacements?|way|equivalents?)\b",
    ),
    _mark(Intent.QUESTION, 1, r"\?\s*$"),
    _mark(Intent.TRACKING, 2, r"^\s*(?:[-*+]\s+)?\[[ xX]\]\s"),  # the parser of Markdown drops the bullet
    _mark(
        Intent.TRACKING,
        2,
        r"\b(?:this (?:is a|issue is (?:primarily )?(?:for|a)) track|for tracking purposes"
        r"|tracking issue)",
    ),
    _mark(Intent.DOCUMENTATION, 1, r"https?://\S+/(?:docs?|tutorials?|reference|blob/\S+/docs)/"),
    _mark(
        Intent.BUILD,
        2,
        r"\bre-?(?:compil(?:e|ed|ing)|buil(?:d|t|ding)) (?:the |my |our )?(?:whole )?"
        r"(?:project|sources?|tree|repo(?:sitory)?)\b",
    ),
    _mark(Intent.BUILD, 2, r"/actions/runs/|/runs/\d{5,}|ci\.[\w.-]+/|buildkite|\bfails? (?:in|on) (?:the )?ci\b"),
    _mark(Intent.BUILD, 2, r"(?:^|[\s`])-D[A-Z][A-Z_]{3,60}=(?:ON|OFF)\b"),
    _mark(
        Intent.BUILD,
        1,
        r"\b(?:build(?:ing)?|compil(?:e|ing)) (?:\w+ )?from source\b|\bcmake\b|\bninja\b"
        r"|\bbazel\b",
    ),
    _mark(Intent.BUILD, 3, _BUILDS_CHECKOUT),
)  # fmt: skip

OUTPUT_MARKS = (
    # A library that cannot be loaded from a build folder is the reporter's own: no release has it.
    _mark(
        Intent.BUILD,
        4,
        r"Error: ?\S{0,200}/build[\w.-]{0,40}/(?:\S{1,100}/)?lib[\w.+-]{1,80}\.(?:so|dylib)[\w.]{0,20}:"
        r" (?:undefined symbol|cannot open shared object|symbol not found)",
    ),
    _mark(Intent.BUILD, 4, r"^CMake Error|^ninja: build stopped|^make(?:\[\d+\])?: \*\*\*|^FAILED: \S"),
    _mark(
        Intent.BUILD,
        4,
        r"^ERROR: (?:Could not find a version|Failed building wheel|No matching distribution"
        r"|pip['’]s dependency resolver|ResolutionImpossible)",
    ),
    _mark(Intent.BUILD, 4, _BUILDS_CHECKOUT),
    # what pip prints around the output of a package's own build
    _mark(Intent.BUILD, 4, r"^\s*(?:\[end of output\]\s*$|(?:× |error: )?subprocess-exited-with-error\b|╰─>)"),
    _mark(Intent.BUILD, 3, r"^docker(?::| build| run)|^Step \d+/\d+ :|^fatal: "),
)

SAYS_IT_FAILS = re.compile(
    r"\b(?:(?:does|do|will|can|could|did) ?(?:not|n['’]t)|won['’]t|can['’]t|unable to|fail(?:s|ed)? to|refuses? to)"
    r"\s+(?:\w+\s+){0,3}?(?:compile|lower|legali[sz]e|translate|convert|run|parse|import|bufferi[sz]e|vectori[sz]e"
    r"|tile|verify|work)\w*\b"
    r"|\b(?:compil\w+|lowering|legali[sz]ation|conversion|translation|it|this|which)\b"
    r"[^.?!\n]{0,60}\b(?:fails|failed|crashes|crashed|asserts|aborts|errors out|is rejected)\b",
    re.I,
)
"""A sentence which states that the compiler does not compile something, or fails."""

_VALUES_ARE_WRONG = (
    r"\b(?:results?|outputs?|values?|answers?|numbers?) (?:is|are|was|were|came out|comes out) (?:\w+ )?"
    r"(?:wrong|incorrect|garbage)\b"
)
CALLS_VALUES_WRONG = re.compile(_VALUES_ARE_WRONG, re.I)
"""A sentence which states that the values of the program are wrong."""

TELLS_OF_FAILURE = re.compile(
    r"\b(?:does|do|did|could|is|are|was|were)(?: not|n['’]t) (?:\w+ ){0,3}?"
    r"(?:compil|lower|legali[sz]|runs?\b|running|pars|import|work|match|able|supported|handled)\w*\b"
    r"|\b(?:stop(?:s|ped)?|no longer) (?:compil|lower|legali[sz]|run|pars|import|work|build)\w*\b"
    r"|\b(?:can(?:not|['’]t)(?! (?:find|tell|decide|see|figure|work|think|understand) (?:out |of )?"
    r"(?:which|what|whether|how|where|why)\b)"
    r"|unable to|fail(?:s|ed|ing)? (?:to|in|on|at|with|when|for|while|during)|refuses? to)\b"
    r"|\b(?:crash(?:es|ed|ing)?|segfaults?|segmentation fault|core dump(?:ed)?|assert(?:s|ed|ion)|abort(?:s|ed)?"
    r"|hangs?|deadlocks?|leak(?:s|ed|ing)?|miscompil\w+|out of memory|oom|regress(?:es|ed|ion)?)\b"
    r"|\bundefined behaviou?r\b|\b(?:\w+sanitizer|ubsan|asan|tsan|msan|valgrind)\b|\bdata races?\b"
    r"|\b(?:wrong|incorrect|inaccurate|inconsistent|unexpected|invalid|different|bad|garbage)"
    r" (?:numerical |numeric |final )?(?:results?|outputs?|values?|answers?|code|ir|behaviou?r|shapes?|types?)\b"
    rf"|{_VALUES_ARE_WRONG}"
    r"|\b(?:gets?|got|getting|gives?|gave|throws?|threw|raises?|raised|reports?|meets?|met|hits?|encounter(?:s|ed)?"
    r"|see(?:ing)?|saw|following|with)\b[^.?!\n]{0,30}\b(?:errors?|exceptions?)\b"
    r"|\b(?:errors?|exceptions?) (?:is|are|was|were|gets?|got|has been) (?:raised|thrown|reported|printed|shown)\b"
    r"|\b(?:errors?|exceptions?) (?:occur(?:s|red)?|happen(?:s|ed)?|appear(?:s|ed)?|came|comes)\b"
    r"|\b(?:much|very|too|significantly|\d+x|times|\d+ ?%|gets?|got|becomes?|became) slow(?:er)?\b"
    r"|\bends? (?:in|with) an error\b"
    r"|\btakes? (?:too long|forever)\b"
    r"|\b(?:i|we)(?:['’]d| would) expect (?:the|that|this|it|an?) [^.?!\n]{1,60}"
    r"\bto (?:remain|stay|be|give|return|survive)\b"
    r"|\bcomplain(?:s|ed)?\b|\b(?:i|we)(?:['’]d| would| had)? expect(?:ed)? to (?:see|get|have|find)\b",
    re.I,
)
"""A sentence which states that something fails or failed."""

ASKS = re.compile(r"\?\s*$|\?\s+[A-Z`(\"]|\b(?:want(?:ed)? to ask|question is|i wonder|wondering)\b", re.I)
"""A sentence that asks."""

SUSPECTS = re.compile(
    r"\b(?:bug|(?<!the )intended(?! (?:way|use|usage|notation|syntax|method|place))|intentional|by design|regression"
    r"|(?:is|are) (?:this|that|it|these) (?:expected|correct|right)(?! that\b)"
    r"|am i (?:missing|doing)|(?:wrong|expected)\?)",
    re.I,
)
"""A question that suspects a fault in the shown behaviour."""

SEEKS = re.compile(
    r"\b(?:what (?:do|does|is the|are the|would|should)|how (?:do|does|is|are|can|should|to)|which (?:one|of|way)"
    r"|where (?:can|do|is)"
    r"|(?:should|can|could|may) (?:i|we)|is there (?:a|an|any|some)|is it (?:ok(?:ay)?|possible|safe|fine)"
    r"|do you recommend)\b[^?]{0,400}\?",
    re.I,
)
"""A question that seeks advice. A remark with a question mark (``a problem of the division?``) is a guess."""

LISTED = re.compile(r"^\s*(?:[-*+]|\(?(?:\d{1,2}|[a-z])[.)])\s+(?P<text>\S.*)$")
"""An item of a list. The parser of Markdown drops its bullet or number."""
FEWEST_ASKED = 2
"""Minimum number of questions in a list of questions. A failure report asks one at most."""

WISHES = re.compile(
    r"\b(?:(?:would|['’]d) be (?:very |really |so )?(?:nice|great|good|useful|handy|convenient|helpful)"
    r"|i(?: would|['’]d) (?:love|like) to (?:have|see))\b",
    re.I,
)
OFFERS = re.compile(
    r"\b(?:would|will|could) (?:you|anyone|somebody|the (?:maintainers|project|team)) (?:take|accept|consider|merge"
    r"|welcome|be (?:open|willing|interested))\b"
    r"|\b(?:happy|willing|glad) to (?:write|send|open|make|contribute|submit|prepare)\b"
    r"|\b(?:a )?(?:pr|patch|pull request)s? (?:is |are |be )?(?:welcome|accepted)\b"
    r"|\bi (?:can|could|would|['’]d) (?:try to )?(?:try|open|send|make|write|submit|prepare) (?:a|the) "
    r"(?:pr|patch|pull request)\b",
    re.I,
)
"""A sentence that offers to make the requested change."""

ASKS_FOR_CONSENT = re.compile(
    r"\bwould (?:you|anyone|the (?:maintainers|project|team)) (?:(?:take|accept|consider|merge|welcome) (?:a|my) "
    r"(?:pr|patch|pull request|contribution)|be (?:open to|interested in))\b",
    re.I,
)
"""A sentence which asks whether a change would be accepted. Such a text requests the change."""

ACCEPTS = re.compile(
    r"\bnothing (?:here |that needs |which needs )?"
    r"(?:to (?:be )?(?:fix|mend|repair|change)(?:ed)?|(?:is|was) (?:broken|at fault))\b"
    r"|\b(?:that|this|it|which|error|message)(?:['’]s| is) (?:clear|fair) enough\b"
    r"|\b(?:i|we) (?:do |fully |also )?(?:understand|reali[sz]e|know|accept|get)(?: that)? [^.?!\n;]{1,60}"
    r"\b(?:is|are|was|were)(?: not|n['’]t) (?:yet |really |a )?"
    r"(?:supported|covered|implemented|stable|meant|intended|allowed|part of)\b"
    r"(?![^.?!\n]{0,60}\bbut\b)"
    r"|\b(?:this|it) is not a (?:bug|defect|regression)\b(?![^.\n]*\?)",
    re.I,
)
"""Words of an author who considers the shown behaviour correct."""

REQUESTS = re.compile(r"^\W{0,3}(?:rfc|feature request)\b", re.I)
"""A title with the tag of a request."""

USUAL = 2
"""The points that a failure needs in a text without code or output: more than a hint."""

CALLS_IT_AN_ERROR = re.compile(
    r"\b(?:gets?|got|getting|with|gives?|throws?|raises?|reports?|meets?|met|hits?|encounter(?:s|ed)?|following|below|this|the)\b"
    r"[^.?!\n]{0,30}\b(?:erro(?:r|rs)?|exceptions?|crash(?:es)?)\b|\b(?:fails|failed|crashes|crashed)\b",
    re.I,
)
"""A sentence of an author who got the printed error."""

SYSTEM_MARKS = (
    _mark(Intent.BUILD, 4, r"undefined reference to"),
    _mark(Intent.BUILD, 4, r"^\S+\.(?:cc|cpp|h|c|hpp|cxx):\d+:\d+: (?:fatal )?error:|collect2: error|ld: error"),
    _mark(Intent.BUILD, 4, r"^cc1(?:plus)?: |\[-Werror=[\w-]{1,40}\]"),
)
"""Errors of the system's compiler and linker. They count if the compiler is being built, not if it calls them."""


def read_intent(parsed: ParsedIssue, claim: Claim) -> Intent:
    """Return the intent of a text.

    A runnable program counts as a hint for a failure: most texts with a program complain about its behaviour.
    """
    if _is_about_moved_name(parsed, claim):
        return Intent.MOVED
    if _lists_questions(parsed):
        return Intent.QUESTION
    if _wishes_and_offers(parsed):
        return Intent.FEATURE
    if _accepts_what_it_shows(parsed):
        return Intent.QUESTION
    if _says_what_should_be(parsed, claim):
        return Intent.FEATURE
    if _asks_about_lost_name(parsed, claim):
        return Intent.MOVED
    points = dict.fromkeys(Intent, 0)
    for intent, worth in _collect_points(parsed, claim):
        points[intent] += worth
    if _shows_something(parsed):
        return max(points, key=lambda intent: (points[intent], intent is Intent.FAILURE))
    if _tells_of_failure(parsed):
        points[Intent.FAILURE] += 2
    if points[Intent.FAILURE] < USUAL:
        points[Intent.FAILURE] = 0
    best = max(points, key=lambda intent: (points[intent], intent is not Intent.FAILURE))
    return best if points[best] else Intent.DISCUSSION


def _lists_questions(parsed: ParsedIssue) -> bool:
    """True for a text that ends with a list of questions, and neither reports nor suspects a fault.

    Its author knows the reason and wants advice: ``1. Can I rely on this? 2. Is there a page …?``
    """
    lines = _split_lines(parsed.prose)
    items = {found["text"].strip() for found in map(LISTED.match, _split_lines(parsed.issue.body)) if found}
    questions = [line for line in lines if ASKS.search(line)]
    asked = sum(line.strip() in items for line in questions)
    title = parsed.issue.title[:300]
    if SEEKS.search(title):  # the questions may then be in one paragraph
        asked = max(asked, sum(len(SEEKS.findall(line)) for line in questions))
    elif title.rstrip().endswith("?") and parsed.signature is None and not _tells_of_failure(parsed):
        asked = max(asked, sum(len(re.findall(r"\?(?=\s|$)", line)) for line in questions))
    suspicious = any(map(SUSPECTS.search, questions)) and not re.search(DISCLAIMS, parsed.prose[:MAX_TEXT], re.I)
    return asked >= FEWEST_ASKED and not suspicious and not _calls_it_wrong(parsed)


def _wishes_and_offers(parsed: ParsedIssue) -> bool:
    """True for a text that requests a change, offers or asks to make it, and reports no fault.

    Such a text quotes the compiler's error of today: ``It would be nice if … Would you take a PR?``
    """
    lines = _split_lines(parsed.prose)
    wishes = any(map(WISHES.search, lines)) or REQUESTS.search(parsed.issue.title[:300]) is not None
    asked = (wishes and any(map(OFFERS.search, lines))) or any(map(ASKS_FOR_CONSENT.search, lines))
    return asked and not _calls_it_wrong(parsed) and not any(map(SUSPECTS.search, filter(ASKS.search, lines)))


def _accepts_what_it_shows(parsed: ParsedIssue) -> bool:
    """True if the author states that the shown behaviour is correct, and reports no fault."""
    lines = _split_lines(parsed.prose)
    suspicious = any(map(SUSPECTS.search, filter(ASKS.search, lines)))
    marks = _match_title(parsed.issue.title[:300])
    titled = any(intent is not Intent.FAILURE and points > USUAL for intent, points in marks)
    others = (line for line in lines if not ACCEPTS.search(line))
    tells = not titled and any(map(TELLS_OF_FAILURE.search, others))
    return any(map(ACCEPTS.search, lines)) and not (suspicious or tells or _calls_it_wrong(parsed))


_SHOULD = re.compile(r"\b(?:should|could|would|ought to|needs? to|want(?:s|ed)? to)\b", re.I)


def _says_what_should_be(parsed: ParsedIssue, claim: Claim) -> bool:
    """True for IR with a sentence on the wanted program, and without command, output, release or word on a failure.

    Only its author knows the pass. A comment that asks for a command is noise on a request.
    """
    shown = {piece.kind for piece in parsed.pieces}
    quotes = parsed.signature is not None or claim.actual or claim.versions
    wishes = any(map(_SHOULD.search, _split_lines(parsed.prose)))
    only_ir = Kind.MLIR in shown and shown <= {Kind.MLIR, Kind.FRAGMENT}
    return only_ir and wishes and not quotes and not _tells_of_failure(parsed) and not _calls_it_wrong(parsed)


_LOST_NAME = re.compile(
    r"unknown (?:command line )?(?:argument|option|flag)|has no attribute|unexpected keyword argument"
    r"|\bnot (?:registered|recogni[sz]ed)",
    re.I,
)


def _asks_about_lost_name(parsed: ParsedIssue, claim: Claim) -> bool:
    """True if the quoted error is about an unknown name, and the author asks or knows whether this is intended."""
    lost = claim.signature is not None and _LOST_NAME.search(claim.signature.message) is not None
    return lost and re.search(ON_PURPOSE, parsed.prose[:MAX_TEXT], re.I) is not None


def _calls_it_wrong(parsed: ParsedIssue) -> bool:
    """True if the title or a label names a failure. A question may contain a word such as *error*."""
    title = parsed.issue.title[:300]
    least = USUAL if title.rstrip().endswith("?") else 1
    marks = (*_match_title(title), *_match(LABEL_MARKS, parsed.issue.labels[:20]))
    return any(intent is Intent.FAILURE and points >= least for intent, points in marks)


def _tells_of_failure(parsed: ParsedIssue) -> bool:
    """True if the title or a sentence states that something fails."""
    title = parsed.issue.title[:300]
    is_named = any(intent is Intent.FAILURE for intent, _ in _match_title(title))
    return is_named or any(map(TELLS_OF_FAILURE.search, (title, *_split_lines(parsed.prose))))


def _shows_something(parsed: ParsedIssue) -> bool:
    """True for code, a command or output, also behind a link. Other texts have only words."""
    return bool(
        any(piece.text.strip() for piece in parsed.pieces)
        or parsed.signature is not None
        or any(not link.shows_output for link in find_links(parsed.issue.body))
        or list(find_stored_files(parsed.issue.body))
    )


def _is_about_moved_name(parsed: ParsedIssue, claim: Claim) -> bool:
    """True if the reported error is about an unknown name that the compiler has moved or removed."""
    if parsed.toolchain is None or claim.signature is None:
        return False
    message = f"{claim.signature.type}: {claim.signature.message}"
    entry = find_moved_name(message, find_toolchain(parsed.toolchain).DRIFT)
    return entry is not None and entry.gone_in is not None  # None: the name exists, and needs an import of its own


def _collect_points(parsed: ParsedIssue, claim: Claim) -> Iterator[tuple[Intent, int]]:
    issue = parsed.issue
    title = issue.title[:300]
    # A label and a tag in the title come from the same template: together they count once.
    yield from dict.fromkeys((*_match_title(title), *_match(LABEL_MARKS, issue.labels[:20])))
    yield from _match(HEADING_MARKS, {p.section.strip() for p in parsed.document.prose if p.section})
    yield from _match(PROSE_MARKS, _split_lines(parsed.prose))
    printed = [p.text for p in parsed.pieces if p.kind not in (Kind.PYTHON, Kind.MLIR)]
    of_build = list(_match(OUTPUT_MARKS, _split_lines("\n".join(printed))))
    yield from of_build
    unexplained = [text for text in printed if not is_raised_by_compiler(parsed, text)]
    raised = any(is_raised_by_compiler(parsed, text) for text in (*printed, parsed.prose))
    if raised and any(map(CALLS_IT_AN_ERROR.search, _split_lines(parsed.prose))):
        yield Intent.FAILURE, 3  # a title that asks for support, above what stops the author
    yield from _match(SYSTEM_MARKS, _split_lines("\n".join(unexplained)))
    if parsed.signature is not None:
        yield Intent.FAILURE, 2
    lines = (title, *_split_lines(parsed.prose))
    asked = [line for line in lines if ASKS.search(line)]
    seeks = any(map(SEEKS.search, asked)) and not any(map(SUSPECTS.search, asked))
    if claim.expected or (claim.actual and not seeks):
        yield Intent.FAILURE, 1
    elif asked and not _tells_of_failure(parsed):
        yield Intent.QUESTION, 2  # it reports no fault: its code or the code's output is the subject
    if claim.kind in (ClaimKind.CRASH, ClaimKind.HANG):
        yield Intent.FAILURE, 1
    if claim.versions:
        yield Intent.FAILURE, 1
    kinds = {piece.kind for piece in parsed.pieces}
    if kinds & {Kind.PYTHON, Kind.MLIR}:
        yield Intent.FAILURE, 1
    elif not kinds & {Kind.DEFINITIONS, Kind.FRAGMENT} and REQUEST.search(title):
        yield Intent.FEATURE, 2  # a request may quote the error for a missing feature, and has no program
    quoted = parsed.signature  # once: each use reads all outputs again
    shows = any(_shows_failure(piece, quoted) for piece in parsed.pieces)
    wrong = claim.kind is ClaimKind.WRONG_RESULT and bool(claim.actual) and any(map(CALLS_VALUES_WRONG.search, lines))
    if Kind.PYTHON in kinds and (shows or wrong) and not of_build:
        # A program and its end: the author wants to remove the error or the wrong values.
        yield Intent.FAILURE, 4
    if {Kind.MLIR, Kind.SHELL} <= kinds:
        says = any(map(SAYS_IT_FAILS.search, lines))
        if says or not _is_filled_request(parsed):
            yield Intent.FAILURE, 3  # a command and its input: every error is the compiler's or its linker's
        else:
            yield Intent.FEATURE, 2  # the template of a request: the error shows the tool's behaviour of today
        if says and (claim.expected or quoted is not None or Kind.OUTPUT not in kinds):
            yield Intent.FAILURE, 4  # the template of a request, filled with a failure


def _is_filled_request(parsed: ParsedIssue) -> bool:
    """True if the text has a heading of the template for requests."""
    sections = {p.section.strip() for p in parsed.document.prose if p.section}
    return any(intent is Intent.FEATURE for intent, _ in _match(HEADING_MARKS, sections))


def _shows_failure(piece: Piece, signature: Signature | None) -> bool:
    """True for printed output that ends with the message of the failure that the report quotes."""
    if signature is None or not signature.message or piece.kind not in (Kind.TRACEBACK, Kind.OUTPUT):
        return False
    return signature.message[:MAX_MESSAGE].split("\n", maxsplit=1)[0] in piece.text


MAX_MESSAGE = 60
"""Number of characters of a message that find it in its output."""


def is_raised_by_compiler(parsed: ParsedIssue, text: str) -> bool:
    """True for a traceback through the compiler's installed Python package: the compiler runs, so it has been built.

    Then an error of the system's linker is about code that the compiler made.
    """
    packages = find_toolchain(parsed.toolchain).FAILURES.packages if parsed.toolchain is not None else ()
    names = "|".join(map(re.escape, packages))
    return bool(names) and bool(re.search(rf'^\s*File "[^"\n]*{_INSTALLED}(?:{names})[/\\]', text[:MAX_TEXT], re.M))


_INSTALLED = r"(?:\bpython|-packages|\.egg)[/\\]"
"""End of the path of a folder with Python packages, also in a checkout of the compiler."""


def _match_title(title: str) -> Iterator[tuple[Intent, int]]:
    """Yield the marks of a title. A name in backticks is not a word of the sentence: ``where`` is not a question."""
    words = _SPAN.sub("` `", title)
    for mark in TITLE_MARKS:
        if mark.pattern.search(title if mark.intent in (Intent.FAILURE, Intent.BUILD) else words):
            yield mark.intent, mark.points


_SPAN = re.compile(r"`[^`\n]{1,300}`")


def _match(marks: tuple[Mark, ...], texts: Iterable[str]) -> Iterator[tuple[Intent, int]]:
    """Yield each mark once, however many texts show it."""
    lines = tuple(texts)
    for mark in marks:
        if any(mark.pattern.search(line) for line in lines):
            yield mark.intent, mark.points


def _split_lines(text: str) -> list[str]:
    return [line[:500] for line in text[:MAX_TEXT].split("\n") if line.strip()]
