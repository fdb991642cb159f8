"""The families of programs, one folder for each compiler: faulty builds, mistakes of the program, claims."""
