"""The supervisor's first file. Python compiles the file it is told to run anew each time; what that imports was
compiled when it was put here (``runners/compiled.py``)."""

import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runners.guest import supervisor
else:
    import supervisor

if __name__ == "__main__":
    sys.exit(supervisor.main())
