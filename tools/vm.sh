#!/usr/bin/env bash
# A virtual machine like those the product runs on elsewhere: systemd, control groups of version 2, docker, podman, and
# an ordinary user with sudo. Not part of the tests: it needs KVM, root to build, and some 20 minutes for a check.
#
#   tools/vm.sh build               make its disk with debootstrap, once (2 minutes)
#   tools/vm.sh start | stop        boot it, and bring this checkout in; shut it down
#   tools/vm.sh run USER COMMAND…   as `runner` (an ordinary user in group docker) or `root`, in the checkout
#   tools/vm.sh check [USER…]       all of it, and the table of docs/sandbox-kit.md
#
# SUITE is the Debian release (bookworm), VM the folder of its disk, MEMORY_MB and CPUS what it has, MIRROR the archive.
# ACCEL=tcg does without KVM: everything holds, some ten times as slowly. A machine that is itself a virtual one may have
# a /dev/kvm that starts no ordinary kernel.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${SUITE:-bookworm}
vm=${VM:-${XDG_CACHE_HOME:-$HOME/.cache}/reprobot-vm/$suite}
memory=${MEMORY_MB:-6144} cpus=${CPUS:-2}
accel=${ACCEL:-kvm}
PATH=$PATH:/usr/sbin:/sbin
# The archive of this machine, if it has the release.
mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE)' "Codename: $suite" 2>/dev/null | sed -n 1p || true)}

# What a runner of GitHub's has of ours: their machines run Ubuntu, whose archive need not be at hand.
packages=(
    systemd-sysv systemd-resolved dbus-user-session libpam-systemd linux-image-cloud-amd64 openssh-server sudo udev kmod
    docker.io podman runc crun bubblewrap uidmap slirp4netns fuse-overlayfs iptables apparmor
    python3 python3-venv git make ca-certificates libseccomp2 procps iproute2
)

die() { echo "tools/vm.sh: $*" >&2; exit 1; }

have() { command -v "$1" >/dev/null 2>&1; }

need() {
    [ "$accel" != kvm ] || [ -w /dev/kvm ] ||
        die "no /dev/kvm here that we may write to: take a machine with virtualisation (group kvm), or ACCEL=tcg and patience"
    local program
    for program in qemu-system-x86_64 ssh ssh-keygen; do
        have "$program" || die "$program is missing: apt-get install qemu-system-x86 openssh-client"
    done
}

# ------------------------------------------------------------------------------------------------- its disk

build() {
    [ -s "$vm/disk.img" ] && { echo "$vm/disk.img is there: remove it to build anew" >&2; return; }
    [ "$(id -u)" = 0 ] || die "debootstrap needs root: sudo tools/vm.sh build"
    have debootstrap || die "debootstrap is missing: apt-get install debootstrap"
    mkdir -p "$vm"
    root=$vm/root # not local: the trap outlives this function
    trap 'umount -q "$root/proc" "$root/sys" || true; rm -rf --one-file-system "$root"' EXIT
    rm -rf --one-file-system "$root"
    echo "bootstrapping Debian ($suite)" >&2
    [ -n "$mirror" ] || die "this machine's package sources have no $suite: set MIRROR to the address of its archive"
    debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$vm/build.log" 2>&1 || { tail -n 5 "$vm/build.log" >&2; return 1; }
    mount -t proc proc "$root/proc"
    mount -t sysfs sys "$root/sys"
    furnish "$root" >>"$vm/build.log" 2>&1 || { tail -n 5 "$vm/build.log" >&2; return 1; }
    umount "$root/proc" "$root/sys"
    cp "$root"/boot/vmlinuz-* "$vm/vmlinuz"
    cp "$root"/boot/initrd.img-* "$vm/initrd.img"
    truncate -s "${DISK_GB:-24}G" "$vm/disk.new"
    mke2fs -q -F -t ext4 -d "$root" "$vm/disk.new"
    mv "$vm/disk.new" "$vm/disk.img"
}

furnish() {
    local root=$1 file
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # starts no service while it is built
    chmod +x "$root/usr/sbin/policy-rc.d"
    chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -ec '
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends "$@" </dev/null' install "${packages[@]}" $(optional "$root")
    rm "$root/usr/sbin/policy-rc.d"
    # What this machine needs to reach its package index, if anything.
    for file in /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
        if [ -e "$file" ]; then cp "$file" "$root$file"; fi
    done
    echo SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt >>"$root/etc/environment" # uv has certificates of its own
    chroot "$root" useradd --create-home --uid 1001 --shell /bin/bash --groups docker runner
    echo 'runner ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/runner"
    ssh-keygen -q -t ed25519 -N '' -f "$vm/key" <<<y >/dev/null
    for file in root home/runner; do
        install -d -m 700 "$root/$file/.ssh"
        install -m 600 "$vm/key.pub" "$root/$file/.ssh/authorized_keys"
    done
    chroot "$root" chown -R runner: /home/runner
    echo reprobot-vm >"$root/etc/hostname"
    printf '127.0.0.1 localhost reprobot-vm\n' >"$root/etc/hosts"
    printf '[Match]\nName=e*\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/e.network"
    chroot "$root" systemctl enable systemd-networkd systemd-resolved ssh docker
    ln -sf /run/systemd/resolve/resolv.conf "$root/etc/resolv.conf"
    : >"$root/etc/fstab"
}

# gVisor, where the release has it.
optional() { chroot "$1" apt-cache show runsc >/dev/null 2>&1 && echo runsc || true; }

# ------------------------------------------------------------------------------------------------- running it

running() { [ -s "$vm/pid" ] && kill -0 "$(cat "$vm/pid")" 2>/dev/null; }

port() { cat "$vm/port"; }

in_vm() {
    local user=$1
    shift
    ssh -q -i "$vm/key" -p "$(port)" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
        -o ConnectTimeout=5 -o ServerAliveInterval=15 "$user@127.0.0.1" "$@"
}

boot() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' >"$vm/port"
    # With arch-capabilities the guest asks for a register that not every host offers.
    local -A processor=([kvm]="-accel kvm -cpu host,arch-capabilities=off" [tcg]="-accel tcg,thread=multi -cpu max")
    # shellcheck disable=SC2086  # two options and their values
    qemu-system-x86_64 ${processor[$accel]:?ACCEL is kvm or tcg} -smp "$cpus" -m "$memory" -display none -nodefaults \
        -kernel "$vm/vmlinuz" -initrd "$vm/initrd.img" -append "root=/dev/vda rw console=ttyS0 quiet ${KERNEL_OPTIONS:-}" \
        -drive "file=$vm/disk.img,format=raw,if=virtio,cache=unsafe" \
        -netdev "user,id=net,hostfwd=tcp:127.0.0.1:$(port)-:22" -device virtio-net-pci,netdev=net -device virtio-rng-pci \
        -serial "file:$vm/console.log" -pidfile "$vm/pid" -daemonize
    local until=$((SECONDS + 180))
    until in_vm root true </dev/null; do
        running || die "it died while booting: see $vm/console.log"
        [ $SECONDS -lt $until ] || { kill "$(cat "$vm/pid")"; die "it does not answer: see $vm/console.log, or try ACCEL=tcg"; }
        sleep 1
    done
}

# The tracked files of this checkout, as they are, for both users.
bring() {
    in_vm root "mkdir -p /srv/reprobot && cd /srv/reprobot && find . -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +"
    git ls-files -z | tar --null --files-from=- --owner=runner:1001 --group=runner:1001 -cf - |
        in_vm root "chown runner: /srv/reprobot && tar -C /srv/reprobot -xf -"
    in_vm runner "cd /srv/reprobot && make --no-print-directory .venv/.ready"
}

start() {
    need
    [ -s "$vm/disk.img" ] || die "no disk yet: sudo tools/vm.sh build"
    running || boot
    bring
}

stop() {
    running || return 0
    local pid left=20
    pid=$(cat "$vm/pid")
    in_vm root poweroff || true
    while kill -0 "$pid" 2>/dev/null && [ $((left -= 1)) -gt 0 ]; do sleep 1; done
    kill "$pid" 2>/dev/null || true
    rm -f "$vm/pid"
}

run_in() {
    running || die "it does not run: tools/vm.sh start"
    local user=$1
    shift
    in_vm "$user" "cd /srv/reprobot && $(printf '%q ' "$@")"
}

check() {
    start
    local user slower=1 failed=0
    [ "$accel" = kvm ] || slower=12
    for user in "$@"; do
        printf '\n%s\n\n' "## $user"
        in_vm "$user" "cd /srv/reprobot && REPROBOT_KIT_SLOWER=$slower .venv/bin/python -m bench.robustness.machine \
            --kills ${KILLS:-50} --timeout $((120 * slower))" || failed=1
    done
    stop
    return $failed
}

case "${1:-}" in
    build) build ;;
    start) start ;;
    stop) stop ;;
    run) shift; run_in "$@" ;;
    check) shift; [ $# -gt 0 ] || set -- runner root; check "$@" ;;
    *) die "usage: tools/vm.sh build | start | stop | run USER COMMAND… | check [USER…]" ;;
esac
