#!/usr/bin/env bash
# Print the first Python of this machine that can make a virtual environment and is new enough; fail if none can.
set -euo pipefail

for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        command -v "$python"
        exit 0
    fi
done
exit 1
