"""Judge a failure that needs a package which is younger than the release. Pure."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import quote_span
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.findings import describe_other_version
from runners.core.protocol import Answer, FindingKind, Variant


def judge_younger_package(evidence: Evidence) -> Verdict | None:
    """Return the verdict if a clean release fails as reported with the packages of the report's day.

    The finding names the package; the recorded run with that package decides.
    """
    found = next((one for one in evidence.findings if one.kind is FindingKind.YOUNGER_PACKAGE), None)
    if found is None:
        return None
    known = found.evidence
    version, name, older, younger = (str(known.get(key, "")) for key in ("version", "name", "older", "younger"))
    failing = [
        at
        for at, seen in enumerate(evidence.observations)
        if seen.variant is Variant.CONTROL
        and seen.version == version
        and seen.answer is Answer.BAD
        and describe_other_version(name, older, younger) in seen.changes
    ]
    if not failing or version not in evidence.find_versions(Answer.GOOD):
        return None
    package = quote_span(name, 60)
    return make_verdict(
        VerdictKind.CONFIRMED,
        (Ground.FAILS, Ground.YOUNGER_PACKAGE),
        f"It fails as reported on {version} with {package} {younger}, which is younger than the release; with"
        f" {package} {older} it runs cleanly.",
        (f"until this is mended: install {quote_span(f'{name}=={older}', 80)} beside {version}",),
        (*evidence.find_indices(version), *failing),
    )
