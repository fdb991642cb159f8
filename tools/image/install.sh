#!/bin/sh
# Install Debian packages into an image and leave nothing that differs from build to build.
#
#   install.sh PACKAGE…        DEBIAN_SOURCES: lines for sources.list, such as a dated snapshot of the archive
#                              CERTIFICATES: a file of certificates that the archive is trusted by
set -eu
export DEBIAN_FRONTEND=noninteractive
if [ -n "${DEBIAN_SOURCES:-}" ]; then
    rm -f /etc/apt/sources.list.d/*
    printf '%s\n' "$DEBIAN_SOURCES" >/etc/apt/sources.list
fi
# Documents and translations are half of some packages, and nobody reads them here.
cat >/etc/dpkg/dpkg.cfg.d/reprobot <<'CONF'
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/info/*
path-include=/usr/share/doc/*/copyright
CONF
trust=${CERTIFICATES:+-o Acquire::https::CaInfo=$CERTIFICATES}
# shellcheck disable=SC2086  # two words or none
apt-get $trust update -qq
# shellcheck disable=SC2086
apt-get $trust install -y -qq --no-install-recommends "$@"
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* /tmp/* /run/* /etc/machine-id /var/lib/dpkg/*-old
rm -rf /usr/share/doc/*/changelog* /usr/share/man/* /usr/share/locale/* /usr/share/info/*
find / -xdev -name __pycache__ -prune -exec rm -r {} +
# Set-user-id programs have no use for a testcase that is nobody.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
