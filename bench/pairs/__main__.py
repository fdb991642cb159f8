import sys

from bench.pairs.score import main

if __name__ == "__main__":
    sys.exit(main())
