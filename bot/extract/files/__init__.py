"""Links of an issue, and the linked files that fill the gaps of a testcase. Fetching is left to `bot.forge`."""
