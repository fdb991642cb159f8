"""Judge a failure that needs a package which is younger than the release. Pure."""

from __future__ import annotations

from bot.verdict.evidence import Evidence
from bot.verdict.grounds import Ground
from bot.verdict.rules.phrases import quote_span
from bot.verdict.verdict import Verdict, VerdictKind, make_verdict
from runners.core.findings.kinds import describe_other_version
from runners.core.findings.record import read_evidence
from runners.core.findings.types import PackageEvidence
from runners.core.protocol import Answer, Variant


def judge_younger_package(evidence: Evidence) -> Verdict | None:
    """Return the verdict if a clean release fails as reported with the packages of the report's day.

    The finding names the package; the recorded run with that package decides.
    """
    known = next((one for one in map(read_evidence, evidence.findings) if isinstance(one, PackageEvidence)), None)
    if known is None:
        return None
    version, name, older, younger = (one or "" for one in (known.version, known.name, known.older, known.younger))
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
