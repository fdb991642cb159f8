#!/usr/bin/env bash
# Run a command with an environment built from nothing: what finds programs, caches and the network, and no secret.
#
#   tools/bare-env.sh COMMAND [ARGUMENT…]
#
# A list of what may pass, not of what may not: nobody knows the names of all secrets.
set -euo pipefail

passes=(
    PATH HOME LANG LC_ALL TMPDIR XDG_RUNTIME_DIR XDG_CACHE_HOME              # where things are
    XDG_CONFIG_HOME XDG_DATA_HOME PYENV_ROOT UV_PYTHON_INSTALL_DIR RUNNER_TOOL_CACHE
    HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy          # how to get out
    SSL_CERT_FILE SSL_CERT_DIR PIP_INDEX_URL UV_DEFAULT_INDEX UV_INDEX_URL   # where packages come from
    UV_CONFIG_FILE PIP_CONFIG_FILE UV_FIND_LINKS PIP_FIND_LINKS UV_OFFLINE
    DOCKER_HOST CONTAINER_HOST                                               # which engine
    GITHUB_ACTIONS RUNNER_ENVIRONMENT RUNNER_TEMP                            # what kind of machine: no tokens
    REPROBOT_CACHE REPROBOT_CONFIG REPROBOT_NIGHTLIES REPROBOT_EPHEMERAL REPROBOT_GPU REPROBOT_IMAGE
)
clean=()
for name in "${passes[@]}"; do
    [ -z "${!name+set}" ] || clean+=("$name=${!name}")
done
exec env -i "${clean[@]}" "$@"
