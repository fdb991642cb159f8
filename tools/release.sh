#!/usr/bin/env bash
# Check that a tag can be released, and print the release's notes: tools/release.sh vX.Y.Z
# The tag, the version in pyproject.toml and a section of CHANGELOG.md must agree.
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:?which tag: vX.Y.Z}
version=${tag#v}
fail() { echo "release: $*" >&2; exit 2; }

number='(0|[1-9][0-9]*)'
[[ $tag =~ ^v$number\.$number\.$number$ ]] || fail "$tag is no version: write vX.Y.Z, see https://semver.org"
grep -qxF "version = \"$version\"" pyproject.toml || fail "pyproject.toml has another version than $tag"
notes=$(awk -v title="## $version" '$0 == title || index($0, title " ") == 1 { on = 1; next } /^## / { on = 0 } on' CHANGELOG.md)
[[ $notes == *[![:space:]]* ]] || fail "CHANGELOG.md has no section '## $version': rename 'Unreleased' in the released commit"
printf '%s\n' "$notes"
