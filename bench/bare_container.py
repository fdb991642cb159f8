"""Run the README's first command in a container that has nothing: ``python -m bench.bare_container``.

The wheel is built, and ``uvx`` installs it in a container of the bootstrapped Debian (``tools/images.sh runner``
makes it), with Python and bubblewrap from Debian. The command then answers a local issue file. It needs root, podman
and runc. Prints the seconds of each stage.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runners.sandbox.limits.hard_limits import cap_limit

ROOT = Path(__file__).parents[1]
BASE = "localhost/reprobot-base:bookworm"
ISSUE = "unused-tensor-argument-crash"
WANTED = "Already fixed"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
STAGES = (
    (
        "Debian's packages",
        "apt-get -qq update && apt-get -qq install --yes --no-install-recommends bubblewrap python3 util-linux",
    ),
    ("uvx installs", "uvx --from /wheel/*.whl reprobot --version"),
    (
        "reproduce",
        f"uvx --from /wheel/*.whl reprobot reproduce /issues/{ISSUE}.md --versions 3.8.0,3.9.0",
    ),
    (
        "reproduce again",
        f"uvx --from /wheel/*.whl reprobot reproduce /issues/{ISSUE}.md --versions 3.8.0,3.9.0",
    ),
)


def main() -> int:
    uv, uvx = shutil.which("uv"), shutil.which("uvx")
    if uv is None or uvx is None:
        sys.stderr.write("uv and uvx are not on PATH\n")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True
        )
        settings = Path(folder) / "containers.conf"
        files, processes = cap_limit(resource.RLIMIT_NOFILE, 4096), cap_limit(resource.RLIMIT_NPROC, 4096)
        ulimits = f'["nofile={files}:{files}", "nproc={processes}:{processes}"]'
        settings.write_text(
            f'[containers]\ndefault_ulimits = {ulimits}\n[engine]\nruntime = "runc"\n', encoding="utf-8"
        )
        variables = {**os.environ, "CONTAINERS_CONF": str(settings)}
        mounts = {folder: "/wheel", str(ROOT / "examples/issues"): "/issues", CERTIFICATES: CERTIFICATES}
        mounts |= {uv: "/usr/local/bin/uv", uvx: "/usr/local/bin/uvx"}
        volumes = [f"--volume={host}:{guest}:ro" for host, guest in mounts.items() if Path(host).exists()]
        command = ["podman", "run", "--detach", "--rm", "--privileged", "--network=host", *volumes]
        started = subprocess.run(
            [*command, f"--env=SSL_CERT_FILE={CERTIFICATES}", BASE, "sleep", "3600"],
            check=True, capture_output=True, text=True, env=variables,
        )  # fmt: skip
        container = started.stdout.strip()
        try:
            return _run_stages(container, variables)
        finally:
            subprocess.run(["podman", "kill", container], check=False, capture_output=True, env=variables)


def _run_stages(container: str, variables: dict[str, str]) -> int:
    output = ""
    for title, command in STAGES:
        begin = time.monotonic()
        ended = subprocess.run(
            ["podman", "exec", container, "bash", "-c", command],
            check=False, capture_output=True, text=True, env=variables, timeout=900,
        )  # fmt: skip
        sys.stdout.write(f"{title}: {time.monotonic() - begin:.0f} s\n")
        if ended.returncode != 0:
            sys.stderr.write(ended.stderr[-2000:])
            return 1
        output = ended.stdout
    sys.stdout.write(output[:400] + "\n")
    return 0 if WANTED in output else 1


if __name__ == "__main__":
    raise SystemExit(main())
