"""Make stand-ins for libraries that a machine without a GPU lacks, so that programs which link them can be loaded.

The stand-ins are our own C code, compiled on the host. No code of a wheel is compiled or run. `compile` writes one
library, `elf` reads the needs of a wheel's libraries, `gpu` joins the two for wheels without their GPU packages.
"""
