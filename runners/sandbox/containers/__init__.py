"""Run docker, podman and gVisor (podman with ``runsc``) by their command lines.

`engine` chooses how to invoke the program on this machine; `session` runs one container; `command_line` builds the
arguments; `podman_store` and `skeleton` make the file system of containers.
"""
