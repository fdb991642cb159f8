"""``python -m reprobot``."""

from reprobot import main

main()
