#!/usr/bin/env bash
# Install the system packages that are missing: a Python (>= 3.11, with venv) and something to confine testcases with.
#
#   tools/setup-system.sh [--python-only | --devices]
#
# --devices adds software Vulkan, which the tests and reports about Vulkan need and nothing else does, npm, by which
# the tests get GitHub's description of its API, and gVisor (6 MB), whose engine they try.
# Asks nothing, does nothing when nothing is missing, and says in one sentence what it cannot do. Debian and Ubuntu;
# elsewhere it names what to install.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python_only=${1:-} devices=${1:-}

have() { command -v "$1" >/dev/null 2>&1; }

# A docker client without a daemon behind it confines nothing.
docker_answers() { have docker && timeout 10 docker info >/dev/null 2>&1; }

missing_python() {
    "$here/python.sh" >/dev/null && return
    if ! have python3 || python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo python3-venv
    else
        echo python3.11-venv # Ubuntu 22.04: its python3 is 3.10
    fi
}

missing_sandbox() {
    [ "$python_only" = --python-only ] && return
    # bubblewrap is small and needs no daemon: it is there even where a container engine refuses to work.
    have bwrap || echo bubblewrap
    have podman || docker_answers || echo podman
    have runc || have crun || echo runc
    have newuidmap || echo uidmap
    have git || echo git
    # Not grep -q: it closes the pipe early, and pipefail takes ldconfig's SIGPIPE for "not found".
    if have ldconfig && ldconfig -p | grep 'libseccomp\.so\.2' >/dev/null; then return; fi
    echo libseccomp2
}

missing_devices() {
    [ "$devices" = --devices ] || return 0
    have npm || echo npm
    compgen -G '/usr/share/vulkan/icd.d/lvp_icd*.json' >/dev/null || echo mesa-vulkan-drivers
    have debootstrap || echo debootstrap
    # gVisor, an engine to test; not every distribution has it.
    if ! have runsc && have apt-cache && apt-cache show runsc >/dev/null 2>&1; then echo runsc; fi
    if have ldconfig && ldconfig -p | grep 'libvulkan\.so\.1' >/dev/null; then return; fi
    echo libvulkan1
}

install() {
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        if have sudo && sudo -n true 2>/dev/null; then as_root=(sudo -n); else
            echo "reprobot needs system packages: run 'apt-get install $*' as root, then try again." >&2
            return 1
        fi
    fi
    if ! have apt-get; then
        echo "reprobot needs these Debian packages, or what they are called here: $*. Install them, then try again." >&2
        return 1
    fi
    echo "installing $*" >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -ec '
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null' install "$@"
}

PATH=$PATH:/usr/sbin:/sbin
mapfile -t packages < <(missing_python; missing_sandbox; missing_devices)
[ ${#packages[@]} -eq 0 ] || install "${packages[@]}"
# A machine without any python3 may have been given one that is too old.
mapfile -t packages < <(missing_python)
[ ${#packages[@]} -eq 0 ] || install "${packages[@]}"
