"""Find the programs that a command line calls: a driver of the compiler, and a script with its arguments."""
