#!/usr/bin/env bash
# Make .venv with exactly what requirements.lock names, checked by hash, and the project itself as editable.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(tools/python.sh) || { echo "no Python >= 3.11 with venv here: run tools/setup-system.sh" >&2; exit 1; }
[ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null || "$python" -m venv --clear .venv
pip=(.venv/bin/python -m pip --disable-pip-version-check --no-input --quiet --quiet)
echo "installing requirements.lock into .venv" >&2
"${pip[@]}" install --require-hashes --requirement requirements.lock
"${pip[@]}" install --no-deps --no-build-isolation --editable .
