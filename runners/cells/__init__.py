"""Run the cells of a plan: one in this process, or each in a child process without the parent's secrets."""
