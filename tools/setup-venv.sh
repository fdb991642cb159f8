#!/usr/bin/env bash
# Make .venv with exactly what requirements.lock names, checked by hash, and the project itself as editable;
# with --run only with what running it needs, in half the time.
# pip installs uv alone, from the lock, and uv installs the rest: pip takes some 20 s of processor time for it, uv 1 s.
# On a machine that keeps the folder, an environment from the same files stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  "") lock=requirements.lock ;;
  --run) lock=requirements.run.lock ;;
  *) echo "usage: tools/setup-venv.sh [--run]" >&2; exit 2 ;;
esac

# What the environment is made of: the folder and the interpreter count, as both are written into it.
ingredients() { pwd && .venv/bin/python -I -S -c 'import sys; print(sys.version)' && cat "$lock" pyproject.toml tools/setup-venv.sh; }
made=.venv/.made-of
if ingredients 2>/dev/null | cmp -s - "$made"; then exit; fi
rm -f "$made"

python=$(tools/python.sh) || { echo "no Python >= 3.11 with venv here: run tools/setup-system.sh" >&2; exit 1; }
pip=("$python" -m pip --python .venv/bin/python)
"$python" -m pip --python "$python" --version >/dev/null 2>&1 || pip=(.venv/bin/python -m pip)  # older than pip 22.3
if ! { [ -x .venv/bin/python ] && .venv/bin/python -c ''; } 2>/dev/null; then
  # Copying pip into the environment takes 4 s of processor time.
  if [ "${pip[0]}" = "$python" ]; then bare=(--without-pip); else bare=(); fi
  "$python" -m venv --clear "${bare[@]}" .venv
fi
pip+=(--disable-pip-version-check --no-input --quiet --quiet)
echo "installing $lock into .venv" >&2

uv_lock=$(mktemp)
trap 'rm -f "$uv_lock"' EXIT
sed -n '/^uv==/,/[^\\]$/p' "$lock" >"$uv_lock"
"${pip[@]}" install --require-hashes --requirement "$uv_lock"

uv=(.venv/bin/uv --quiet --no-config pip install --python .venv/bin/python)
# uv does not read pip's configuration (a mirror, a certificate). Where uv cannot install, pip does.
if ! "${uv[@]}" --require-hashes --requirement "$lock" 2>/dev/null; then
  "${pip[@]}" install --require-hashes --requirement "$lock"
fi
"${uv[@]}" --offline --no-deps --no-build-isolation --editable . 2>/dev/null ||
  "${pip[@]}" install --no-deps --no-build-isolation --editable .

ingredients >"$made"
