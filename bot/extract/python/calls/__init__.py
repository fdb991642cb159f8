"""Programs that a command line calls: a driver of the compiler, and the arguments of a script."""
