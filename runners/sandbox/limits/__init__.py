"""Set the kernel's limits for all engines: control groups (memory, processes), processor time, system calls."""
