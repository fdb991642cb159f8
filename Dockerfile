# The images of Reprobot. `tools/images.sh STAGE` builds them with podman, from nothing where there is no registry;
# docker builds them from the default bases:
#
#   runner      what a testcase sees when REPROBOT_IMAGE names this image: a system, and no compiler. Releases of
#               compilers are mounted into it read-only, from the store.
#   runner-gpu  the same on a base with CUDA's user space: --build-arg GPU_BASE=…
#   bot         `reprobot watch`: the process that talks to GitHub. It brings no sandbox of its own; see docs/github.md.
#
# Reproducible: one base (by digest), one list of package versions (DEBIAN_SOURCES can name a dated snapshot of the
# archive), one time stamp (SOURCE_DATE_EPOCH), and nothing left that depends on when or where it was built.
ARG BASE=debian:bookworm-slim
ARG GPU_BASE=nvidia/cuda:12.8.1-base-ubuntu22.04

FROM ${BASE} AS system
ARG DEBIAN_SOURCES=""
ARG CERTIFICATES=""
# compilers: libstdc++6, libgomp1, libxml2, zlib1g and libtinfo6 are what their libraries link; g++ is what
# TVM calls to link what it exports. Vulkan: the loader, and Mesa's driver for the CPU.
ARG PACKAGES="ca-certificates g++ libc6-dev libgomp1 libstdc++6 libtinfo6 libvulkan1 libxml2 mesa-vulkan-drivers python3 zlib1g"
COPY tools/image/install.sh tools/image/lavapipe.sh /opt/build/
RUN DEBIAN_SOURCES="${DEBIAN_SOURCES}" CERTIFICATES="${CERTIFICATES}" /opt/build/install.sh ${PACKAGES} && /opt/build/lavapipe.sh && rm -r /opt/build

FROM system AS runner
LABEL org.opencontainers.image.title="reprobot runner" \
      org.opencontainers.image.description="The system in which testcases of ML compilers run; no compiler in it" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.reprobot.stage="runner"
ENV LC_ALL=C.UTF-8
USER 65534:65534
WORKDIR /work
CMD ["/usr/bin/python3", "--version"]

FROM ${GPU_BASE} AS runner-gpu
ARG DEBIAN_SOURCES=""
ARG CERTIFICATES=""
ARG PACKAGES="ca-certificates g++ libc6-dev libgomp1 libstdc++6 libtinfo6 libvulkan1 libxml2 mesa-vulkan-drivers python3 zlib1g"
COPY tools/image/install.sh tools/image/lavapipe.sh /opt/build/
RUN DEBIAN_SOURCES="${DEBIAN_SOURCES}" CERTIFICATES="${CERTIFICATES}" /opt/build/install.sh ${PACKAGES} && /opt/build/lavapipe.sh && rm -r /opt/build
LABEL org.opencontainers.image.title="reprobot runner with CUDA" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.reprobot.stage="runner-gpu"
# The container toolkit reads these: compute and the driver's tool, of the one device that the run is given.
ENV LC_ALL=C.UTF-8 NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 65534:65534
WORKDIR /work
CMD ["/usr/bin/python3", "--version"]

FROM ${BASE} AS bot
ARG DEBIAN_SOURCES=""
ARG CERTIFICATES=""
COPY tools/image/install.sh /opt/build/
RUN DEBIAN_SOURCES="${DEBIAN_SOURCES}" CERTIFICATES="${CERTIFICATES}" /opt/build/install.sh bubblewrap ca-certificates git libseccomp2 python3 python3-venv && rm -r /opt/build
COPY requirements.run.lock pyproject.toml README.md LICENSE /opt/reprobot/
COPY bot /opt/reprobot/bot
COPY runners /opt/reprobot/runners
COPY reprobot /opt/reprobot/reprobot
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install ${CERTIFICATES:+--cert "$CERTIFICATES"} --no-cache-dir --quiet --require-hashes --only-binary :all: -r /opt/reprobot/requirements.run.lock \
    && /opt/venv/bin/pip install --no-cache-dir --quiet --no-deps --no-index --no-build-isolation /opt/reprobot \
    && find /opt /root -name __pycache__ -prune -exec rm -r {} + \
    && rm -rf /opt/reprobot "$HOME/.cache" /tmp/*
LABEL org.opencontainers.image.title="reprobot" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.reprobot.stage="bot"
ENV PATH=/opt/venv/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 REPROBOT_CACHE=/var/lib/reprobot/store
RUN /usr/sbin/useradd --system --create-home --home-dir /var/lib/reprobot --shell /usr/sbin/nologin reprobot \
    && rm -f /var/log/lastlog /var/log/faillog /etc/passwd- /etc/shadow- /etc/group- /etc/gshadow- /etc/subuid- /etc/subgid-
USER reprobot
WORKDIR /var/lib/reprobot
VOLUME /var/lib/reprobot
ENTRYPOINT ["reprobot"]
CMD ["watch", "--help"]
