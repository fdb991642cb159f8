#!/usr/bin/env bash
# Build an image of the Dockerfile with podman: tools/images.sh runner|bot [NAME]
#
# BASE names the base image; without it, one is made here with debootstrap (Debian 12), so that no registry is needed,
# and kept. REBUILD=1 takes nothing from earlier builds. Prints the image's name. As root, or as a user whom podman serves.
set -euo pipefail
cd "$(dirname "$0")/.."
stage=${1:?which stage of the Dockerfile: runner or bot}
name=${2:-localhost/reprobot-$stage}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1767225600} # 2026-01-01: the same bytes whenever it is built
cache=${REPROBOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/reprobot}/images
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

say() { echo "$*" >&2; }

# Debian's crun and its default limits are refused by machines with control groups of both versions.
cat >"$work/containers.conf" <<'CONF'
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
CONF
export CONTAINERS_CONF=$work/containers.conf

bootstrapped_base() {
    local base=localhost/reprobot-base:bookworm archive=$cache/base-bookworm.tar
    if ! podman image exists "$base"; then
        if [ ! -s "$archive" ]; then
            say "bootstrapping Debian 12 (once, some 20 s)"
            command -v debootstrap >/dev/null || { say "install debootstrap, or name a base image in BASE"; return 1; }
            debootstrap --variant=minbase bookworm "$work/base" >"$work/debootstrap.log" 2>&1 ||
                { tail -n 5 "$work/debootstrap.log" >&2; return 1; }
            rm -rf "$work"/base/var/cache/* "$work"/base/var/log/* "$work"/base/var/lib/apt/lists/*
            mkdir -p "$cache"
            tar --numeric-owner --sort=name --mtime="@$SOURCE_DATE_EPOCH" -C "$work/base" -cf "$archive.new" .
            mv "$archive.new" "$archive"
        fi
        podman import --quiet "$archive" "$base" >/dev/null
    fi
    echo "$base"
}

base=${BASE:-$(bootstrapped_base)}
# The settings and certificates with which this machine reaches its package index and archive. They are mounted while
# the image is built and are no part of it. The certificates get a path of their own: the package ca-certificates
# replaces /etc/ssl/certs/ca-certificates.crt, which fails where that is a mount.
mounts=()
[ -e /etc/pip.conf ] && mounts+=("--volume=/etc/pip.conf:/etc/pip.conf:ro")
if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
    mounts+=("--volume=/etc/ssl/certs/ca-certificates.crt:/mnt/host-certificates.crt:ro")
    mounts+=("--build-arg=CERTIFICATES=/mnt/host-certificates.crt")
fi
say "building $name from $base"
podman build ${REBUILD:+--no-cache} --quiet --pull=never --network=host --target="$stage" --tag="$name" --timestamp="$SOURCE_DATE_EPOCH" \
    --build-arg="BASE=$base" --build-arg="GPU_BASE=${GPU_BASE:-$base}" "${mounts[@]}" . >&2
echo "$name"
