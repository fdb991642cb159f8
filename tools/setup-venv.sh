#!/usr/bin/env bash
# Make .venv with exactly what requirements.lock names, checked by hash, and the project itself as editable;
# with --run only with what running it needs, in half the time.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  "") lock=requirements.lock ;;
  --run) lock=requirements.run.lock ;;
  *) echo "usage: tools/setup-venv.sh [--run]" >&2; exit 2 ;;
esac

python=$(tools/python.sh) || { echo "no Python >= 3.11 with venv here: run tools/setup-system.sh" >&2; exit 1; }
[ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null || "$python" -m venv --clear .venv
pip=(.venv/bin/python -m pip --disable-pip-version-check --no-input --quiet --quiet)
echo "installing $lock into .venv" >&2
"${pip[@]}" install --require-hashes --requirement "$lock"
"${pip[@]}" install --no-deps --no-build-isolation --editable .
