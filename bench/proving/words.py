"""Phrases with which a telling says things: several for each, none taken from an issue."""

from __future__ import annotations

GREETINGS = (
    "",
    "Hi all,",
    "Hello, thanks for this project!",
    "First time filing here, sorry if this is a known one.",
    "We ran into this while moving our models over.",
)
CLOSINGS = (
    "",
    "Happy to try patches.",
    "Let me know if more details would help.",
    "Thanks in advance!",
    "cc anybody who knows this area",
)
OBSERVED_HEADINGS = (
    "What happened", "Actual behavior", "Actual behaviour", "Observed", "Current result", "Symptoms", "Problem",
)  # fmt: skip
EXPECTED_HEADINGS = (
    "Expected behavior", "Expected behaviour", "What I expected", "Should be", "Desired outcome", "Expectation",
)  # fmt: skip
CODE_HEADINGS = (
    "Steps to reproduce", "Reproducer", "Minimal example", "How to trigger", "Code", "Test case", "To reproduce",
)  # fmt: skip
ENVIRONMENT_HEADINGS = ("Environment", "Versions", "Setup", "System info", "Which build")
CODE_INTRODUCTIONS = (
    "",
    "This is enough to see it:",
    "Reproducer:",
    "The program below shows the problem.",
    "Save and run:",
    "Here is a small script",
)
FAILURE_INTRODUCTIONS = (
    "",
    "It ends with",
    "I get this:",
    "Output:",
    "The run prints the following.",
    "Log",
)
WRONG_INTRODUCTIONS = (
    "",
    "What comes out:",
    "It prints",
    "I get:",
    "Output of the run:",
)
RIGHT_INTRODUCTIONS = (
    "",
    "It should print",
    "The right values are",
    "I expected:",
    "Correct output:",
)
RIGHT_FOR_FAILURES = (
    "It should run to the end without an error.",
    "No error.",
    "The program is valid, so I expect no failure.",
    "Expected it to just work.",
)
COMPLAINTS = {
    "crash": (
        "The process dies.",
        "It crashes hard.",
        "This brings the whole process down.",
        "Crash, no Python exception.",
    ),
    "error": (
        "It fails with an error.",
        "This is rejected with an error.",
        "An exception is raised.",
        "Does not work.",
    ),
    "wrong-result": (
        "The result is wrong.",
        "Values are off.",
        "I get incorrect numbers.",
        "Miscompiled, as far as I can tell.",
    ),
    "hang": (
        "It never returns.",
        "This hangs forever.",
        "The program does not terminate.",
        "Runs until I kill it.",
    ),
}
VERSIONS = {
    "exact": (
        "{package} {version}",
        "Version: {version}",
        "installed with `pip install {package}=={version}`",
        "I am on {version} of {project}.",
    ),
    "bullet": ("- {project} version: {version}\n- Python 3.11\n- Ubuntu 22.04",),
    "v": ("{project} v{version}, Python 3.10, Linux",),
    "date": (
        "Built from the sources of {date}.",
        "Using the nightly from {date}.",
        "{project} main, pulled on {date}",
    ),
    "month": ("A build from {month}.", "{project} as of {month}"),
    "main": ("Latest main.", "Current main branch, built from source", "HEAD"),
    "nightly": ("Latest nightly.", "{project} nightly"),
    "absent": ("",),
}
DEVICES = {
    "absent": ("",),
    "prose": ("This is on the CPU, no accelerator involved.", "Plain x86 machine.", "CPU target."),
}
ACCUSATIONS = (
    "I suspect {accused}.",
    "Might be related to {accused}?",
    "`{accused}` seems to be involved.",
)
WORKING_INTRODUCTIONS = (
    "For comparison, this works fine:",
    "This variant is OK:",
    "Without it everything is good, e.g.",
)
TYPOS = {
    "the": "teh", "error": "eror", "with": "wiht", "result": "reslut", "because": "becuase", "should": "shoud",
    "happens": "hapens", "this": "thsi", "output": "ouput", "script": "scirpt", "without": "witout",
}  # fmt: skip
"""Misspellings put into prose, never into code or quoted output."""
