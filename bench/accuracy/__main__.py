import sys

from bench.accuracy.measure import main

if __name__ == "__main__":
    sys.exit(main())
