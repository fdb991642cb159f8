"""The kernel's limits that the engines share: control groups (memory, processes), processor time and system calls."""
