"""Find the builds that a report is about: all notations of versions, and the versions that fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from packaging.version import Version

from bot.extract.blocks.sections import IssueSection, classify_heading
from bot.extract.vocabulary import any_of, any_word, list_vocabularies, vocabulary_of

MAX_VERSIONS = 8

_VERSION = re.compile(
    rf"(?<![\w.%/-])(?<![^=]=)(?:v|{any_word(lambda words: words.versions.prefixes)})?"
    r"(?P<v>\d{1,8}\.\d{1,8}(?:\.\d{1,8})?(?:\.?(?:rc|dev|post|a|b)\d{0,8}){0,2}(?:\+[\w.]{1,40})?)(?![\w%]|\.\d)"
)
_WHEEL = re.compile(
    rf"{any_word(lambda words: words.versions.wheel_patterns)}"
    r"(?:[=~]=|-|==| |: ?|\| *)v?(?P<v>\d+\.\d+[\w.+]*\w)",
    re.I,
)
_FILE = re.compile(
    rf"\b{any_word(lambda words: words.versions.wheel_file_patterns)}-(\d+\.\d+[\w.+]*)-(?:cp|py)\d", re.I
)
"""A wheel's file name."""
_CALLED = any_word(lambda words: words.called)
_OTHER_PRODUCT = re.compile(
    r"(?:python|py|ubuntu|debian|centos|fedora|mac ?os\w*|osx|windows|android|ios|cuda|cudnn|rocm|hip"
    r"|driver|gcc|g\+\+|clang|llvm|cmake|ninja"
    r"|linux|kernel|glibc|torch\w*|pytorch|torchvision|numpy|onnx\w*|onnxruntime|opset\w*|tensorflow|tf"
    r"|keras|jax|flax|transformers"
    r"|vulkan\w*|mesa|conda|pip|docker|jetson\w*|jetpack|mlir|opencl\w*|arm\w*|v?cpu|ir|scipy|triton|bazel"
    r"|java|xcode|ffi|yolo\w*|llama\w*"
    r"|qwen\w*|resnet\w*|mobilenet\w*|gemm\w*|sdk|adreno|tilelang|bitblas|turbine|nvidia-smi|gpu|section"
    r"|chapter|rtol|atol|=)"
    r"[`'\"*_) ]*(?:version|ver\.?|v)?[=:|` *_'\"<>,\[(~-]{0,6}v?$",
    re.I,
)
_DISTINCT = re.compile(r"dev\d*|rc\d{8}|rc\d$|post\d|\d{8}")
_SAID_OF_VERSION = re.compile(
    r"(?:\b(?:on|with|in|both|either|also|version|versions|using|use|to|since|from|at|release|ver|and|or"
    r"|through|until"
    r"|installed|built|is|:|,|;|v)\b|[.:|,;()>→/`*-]|^)[`'\"* (=]*v?$",
    re.I,
)
_USED = re.compile(r"\b(?:on|use|using|used|with|in|version|tested on|running):?[ `v]*$", re.I)
_GOOD_BEFORE = re.compile(
    r"(?:\b(?:works?|worked|working|fine|okay?|good|passes|passed|(?:used to be|was|were) right"
    r"|correct(?:ly)?|succeed\w*|no (?:issue|problem|error)s?|ran|runs (?:fine|ok)|compile[sd] (?:fine|ok)"
    r"|(?:prints?|printed|says?|said) [`'\"*]{0,2}(?:ok|okay|pass|passed|success|done|fine)[`'\"*]{0,2})"
    r"(?:\b|(?<=[`'\"*]))"
    r"[^.;,\n]{0,20}\b(?:with|on|in|at|for|using|version|release|until)|\b(?:from|before|than|unlike|up to"
    r"|until|compared (?:to|with)|not (?:on|in|with)|was|downgrad\w+ to))"
    rf"\s+(?:(?:the|version|release|nightly|{any_word(lambda words: words.versions.leading)}|=+"
    r"|[`'\"*(v])\s*){0,4}$",
    re.I,
)
_GOOD_LABEL = re.compile(
    r"(?:\b(?:last|latest|previous) (?:known )?(?:good|working|passing|ok)\b[\w ]{0,20}[:=]?"
    r"|\bgood(?: version)?:|\bworking version:?"
    rf"|\b(?:previously|formerly|used to work)\b[^;\n]{{0,60}})[\s`'\"*v(]*(?:{_CALLED}|version)?\s*$",
    re.I,
)
_GOOD_AFTER = re.compile(
    r"^[`'\"*)]*\s*(?:→|-{1,2}>|=>)|^[`'\"*)]*[,:]?\s*(?:(?:it|this|that|everything|all|the same (?:code"
    r"|script|program|file)) )?"
    r"(?:(?:takes? )?(?:in |only |just |about )?\d+(?:\.\d+)? ?m?s(?:ec\w*)?\b|takes? (?:only |about )?\d"
    r"|(?:is|was|were|works?|worked|runs?|ran|seems?|does|compiles?|compiled|passes|passed"
    r"|and (?:earlier|before|older)|gives the (?:right|correct))?[ ,]*"
    r"(?:all |still |just |to |be |perfectly |also )*(?:good|fine|ok|okay|works?|worked|correct|unaffected"
    r"|right|not (?:affected|show|have|fail|crash)|without (?:any )?(?:error|problem|issue))"
    r"(?!\w*\s+(?:with|on|in|using|until|at)\b))"
    r"|^[`'\"*)]*\s*(?:also |still |just )?(?:compiled|accepted|handled|lowered|ran) (?:it|this|that|the same)\b"
    r"(?! (?:wrong|incorrect))"
    r"|^[`'\"*)]*\s*still (?:did|does|handle[sd]) (?:this|it|that|so)\b(?! (?:wrong|incorrect|too))",
    re.I,
)
_COMMIT = re.compile(r"(?:(?<![\w./-])|(?<=\d[-+]g))[0-9a-f]{7,40}(?:[~^]\d{0,3})?(?![\w/-]|\.\w)")
_COMMIT_BEFORE = re.compile(
    r"(?:commit(?:[ -]?(?:id|hash|sha))?|sha|hash|revision|rev|head|main|master|trunk|built from|build from"
    rf"|{any_word(lambda words: words.versions.branches)}|checkout|branch|tip of tree|tot|git|version|latest|tree"
    r"|local build)[^\n.;]{0,60}$",
    re.I,
)
_NOT_THE_VERSION = re.compile(
    r"(?:bisect\w*|introduc\w*|caus\w+|culprit|regress\w*|first bad|broke\w*|fix\w*|revert\w*|since|until"
    r"|before|after|ends at|points? (?:at|to)|blame\w*|merged)[^\n;]{0,60}$",
    re.I,
)
_BRANCH = re.compile(
    rf"\b(?:latest |current |recent |newest |upstream |on |at |of |the |{_CALLED} |version:? |commit:? "
    r"|env(?:ironment)?:? |build:? ){0,5}(?P<what>nightly|main(?: branch)?|master|HEAD|top of tree|ToT|trunk)\b",
    re.I,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Text that may name versions, and the heading above the text."""

    text: str
    heading: str = ""


def find_versions(passages: Iterable[Passage], toolchain: str | None) -> tuple[str, ...]:
    """Return the builds that fail according to the report, most explicit first, without the good ones.

    Commits count only without a release, or beside a dev version. ``main`` and ``nightly`` count only without
    releases and commits, unless the text names them together with a release ("3.5.0 and main").
    """
    listed = list(passages)
    releases = [v for p in listed for v in _find_bad_releases(p, toolchain)]
    releases = releases or [v for p in listed for v in _find_installed(p, toolchain)]
    good = set(find_good_versions(listed, toolchain)) if releases else set()
    releases = [v for v in releases if not {v, v.removesuffix(".0")} & good] or releases
    releases = list(dict.fromkeys(releases))[: 8 * MAX_VERSIONS]
    releases = [v for v in releases if not any(other.startswith(f"{v}.") for other in releases)]
    if releases:
        commits = [c for p in listed for c in _find_commits(p)] if all("dev" in v for v in releases) else []
        described = {v.rpartition("+g")[2] for v in releases}
        named = [n for p in listed for n in _find_named_together(p)]
        return tuple(dict.fromkeys([*releases, *(c for c in commits if c not in described), *named]))[:MAX_VERSIONS]
    commits = [c for p in listed for c in _find_commits(p)]
    if commits:
        return tuple(dict.fromkeys(commits))[:MAX_VERSIONS]
    return tuple(dict.fromkeys(b for p in listed for b in _find_branches(p)))[:1]


_TOGETHER = re.compile(
    r"(?<!\w)v?\d{1,4}(?:\.\d{1,8}){0,4}\w{0,20}(?:\+\w{1,40})?[`)]?(?:,| and| or| as well as| ?[/&])"
    r"(?: also| on| in| with| the| today[\'’]?s| current| latest){0,5} "
    r"`?(?P<what>main|master|HEAD|tip of tree)\b`?(?:[^\w\n]{1,3}(?P<sha>[0-9a-f]{7,40})\b)?"
)


def _find_named_together(passage: Passage) -> Iterator[str]:
    for found in _TOGETHER.finditer(passage.text):
        yield found["sha"] or "main"


_SHOWN_FROM = re.compile(
    r"\b(?:traces?|tracebacks?|backtraces?|stack|outputs?|logs?|dump|errors?|messages?|numbers|ir|above|this|that)"
    r" (?:is|are|was|were|comes?|came) (?:all )?from[\s`'\"*v(=]*$",
    re.I,
)
"""Words before the build whose failure the report shows."""


def _is_good(before: str, after: str) -> bool:
    if _SHOWN_FROM.search(before):
        return False
    if _GOOD_BEFORE.search(before) or _GOOD_LABEL.search(before) or _GOOD_AFTER.match(after):
        return True
    if _GOOD_LATER.match(after) and not _NEGATED.search(after[:50]):
        return True
    if _EXEMPT.match(after):
        return bool(_SYMPTOM.search(before))
    found = _AS_IT_SHOULD.match(after)
    return found is not None and not _NEGATED.search(found[0])


_GOOD_LATER = re.compile(
    r"^[^.;,:\n]{0,40}\b(?:is|are|was|were) (?:still )?(?:ok(?:ay)?|fine|good"
    r"|unaffected|correct)\b",
    re.I,
)
_EXEMPT = re.compile(r"^[`'\"*)]*\s*(?:does not|doesn[’']t|did not|didn[’']t|is not|isn[’']t)\s*(?:$|[.;,)])", re.I)
"""``3.8.0 and 3.9.0 show it; 3.7.1 does not.``"""
_SYMPTOM = re.compile(
    r"\b(?:shows?|fails?|crash\w*|affect\w*|happens?|reproduc\w+|hangs?|broken|wrong"
    r"|has)\b",
    re.I,
)
_AS_IT_SHOULD = re.compile(r"^[^.;\n]{0,70}\b(?:as (?:it should|expected)|correctly)\b", re.I)
_NEGATED = re.compile(r"\b(?:not|never|no longer|cannot)\b|n[’']t\b", re.I)
_EGG = re.compile(
    rf"(?:site|dist)-packages/{any_word(lambda words: words.versions.installed_patterns)}"
    r"-(\d+\.\d+[\w.]*?)(?=[+/\])-]|\.egg|$)"
)


def _find_installed(passage: Passage, toolchain: str | None) -> Iterator[str]:
    """Yield the versions in paths of installed packages, as tracebacks show them."""
    return (v for v in _EGG.findall(passage.text) if _is_plausible(v, toolchain))


def find_good_versions(passages: Iterable[Passage], toolchain: str | None) -> tuple[str, ...]:
    """Return the builds that are good according to the report."""
    versions = (v for p in passages for v, good in _find_mentions(p, toolchain) if good)
    return tuple(dict.fromkeys(versions))[:MAX_VERSIONS]


def find_replaced_versions(intros: Iterable[str], said: str, toolchain: str | None) -> tuple[str, ...]:
    """Return the builds with the old output, in a report about a change that shows both outputs.

    ``intros`` are the words above each quoted output. A caption such as ``0.26.0:`` names only the build, and not
    which output is wrong. In a text with ``used to``, all builds except the newest have the right output.
    """
    if not _TELLS_OF_CHANGE.search(said):
        return ()
    captions = (_CAPTION.fullmatch(intro.rstrip().rpartition("\n")[2].strip()) for intro in intros)
    named = {found["v"] for found in captions if found is not None and _is_plausible(found["v"], toolchain)}
    newest = max(map(Version, named), default=None)
    return tuple(sorted((one for one in named if newest is not None and Version(one) < newest), key=Version))


_CAPTION = re.compile(
    rf"(?:(?:and|but|on|in|with|under|for|output of|{_CALLED}),? ){{0,3}}"
    r"[`*]{0,3}v?(?P<v>\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)[`*]{0,3} ?:?[`*]{0,3}",
    re.I | re.ASCII,  # other digits are not part of a version
)
_TELLS_OF_CHANGE = re.compile(
    r"\b(?:used to|previously|formerly|no longer|regress\w*|anymore|any more"
    r"|(?:after|since) (?:the |an? |my |we |I )?(?:updat|upgrad)\w*|before the (?:updat|upgrad)\w*"
    r"|(?:with|in|on|since) the (?:current|new|newest|latest|last) (?:release|version|wheel|update))\b",
    re.I,
)


def _find_bad_releases(passage: Passage, toolchain: str | None) -> Iterator[str]:
    return (version for version, good in _find_mentions(passage, toolchain) if not good)


_OFFERS = re.compile(r"\(from versions: [^)\n]{0,20000}\)?")


def _drop_offers(text: str) -> str:
    """Remove pip's list of all existing versions."""
    return _OFFERS.sub("", text)


_FULL_WIDTH = {0xFF00 + ord(mark) - 0x20: mark for mark in ":,;()=."}
"""Punctuation of Chinese and Japanese keyboards."""


MAX_ON_A_LINE = 200
"""Largest number of numbers with dots that are read on one line: more of them are data."""


def _find_mentions(passage: Passage, toolchain: str | None) -> Iterator[tuple[str, bool]]:
    """Yield each version that the passage names, and whether it is good according to the passage."""
    headed = classify_heading(passage.heading) is IssueSection.ENVIRONMENT
    for line in _drop_offers(passage.text).translate(_FULL_WIDTH).split("\n"):
        wheels = {found.start("v") for found in _WHEEL.finditer(line)}
        yield from ((w, False) for w in _FILE.findall(line) if _is_plausible(w, toolchain))
        for found in islice(_VERSION.finditer(line), MAX_ON_A_LINE):
            version, before = found["v"], line[max(0, found.start("v") - 60) : found.start("v")]
            good = _is_good(before, line[found.end() : found.end() + 80])
            meant = good or found.start("v") in wheels or _is_meant(version, before, toolchain, headed)
            if meant and _is_plausible(version, toolchain):
                yield _PROMOTED.get(version.partition("+")[0], version), good


_PROMOTED = {candidate: release for w in list_vocabularies() for candidate, release in w.versions.promoted.items()}


def _is_meant(version: str, before: str, toolchain: str | None, headed: bool) -> bool:
    """True if the words before a number with dots make the number a version of the toolchain."""
    if _compile_name_pattern(toolchain).search(before):
        return not re.search(r"\bffi[^\w]{0,4}$", before, re.I)
    if _OTHER_PRODUCT.search(before):
        return False
    if _DISTINCT.search(version):
        return True
    short = vocabulary_of(toolchain).versions.short_pattern
    named = _USED.search(before) or re.search(rf"\b{_CALLED}\b[^.;:\n]*\($", before, re.I)
    two_parts = headed or (bool(named) and short is not None and re.fullmatch(short, version))
    return bool(headed or _SAID_OF_VERSION.search(before)) and version.count(".") >= (1 if two_parts else 2)


@cache
def _compile_name_pattern(toolchain: str | None) -> re.Pattern[str]:
    words = any_of(vocabulary_of(toolchain).versions.named_by_patterns)
    return re.compile(rf"{words}[`'\"*_) ]*(?:\(?[\w -]{{0,24}}\)?)?[=:|` *_'\"<>,\[(-]{{0,6}}v?$", re.I)


def _is_plausible(version: str, toolchain: str | None) -> bool:
    return vocabulary_of(toolchain).versions.is_plausible(version)


def _find_commits(passage: Passage) -> Iterator[str]:
    headed = classify_heading(passage.heading) is IssueSection.ENVIRONMENT
    for line in passage.text.split("\n"):
        for found in _COMMIT.finditer(line):
            sha, before = found[0], line[max(0, found.start() - 90) : found.start()]
            if not re.search(r"\d", sha) or (sha.isdigit() and len(sha) < 40):
                continue
            if _NOT_THE_VERSION.search(before):
                continue
            linked = re.search(r"(?:commit|tree)/$", before) is not None
            described = re.search(r"\d[-+]g$|\.dev\d* ?[(@,]? ?$", before) is not None
            if headed or linked or described or _COMMIT_BEFORE.search(before):
                yield sha


def _find_branches(passage: Passage) -> Iterator[str]:
    headed = classify_heading(passage.heading) is IssueSection.ENVIRONMENT
    for found in _BRANCH.finditer(passage.text):
        what = found["what"].lower()
        said = found[0].lower()
        plainly = what == "main branch" or found["what"] == "HEAD"
        if plainly or (what in ("main", "master", "head") and (headed or said != what)):
            yield "main"
        elif what == "nightly":
            yield "nightly"
        elif what in ("trunk", "top of tree", "tot"):
            yield "main"
