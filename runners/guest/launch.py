"""Run a program of this package inside the sandbox: ``python launch.py script.run ARGUMENT…``.

Python compiles its main file at every start. The modules that this file imports have bytecode
(``runners/probe/layout.py``).
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if sys.flags.isolated:
    sys.path.append(ROOT)
else:
    sys.path[0] = ROOT

if __name__ == "__main__":
    program = __import__(f"runners.guest.{sys.argv[1]}", fromlist=["main"])
    sys.exit(program.main(sys.argv[2:]))
