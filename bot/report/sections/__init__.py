"""The parts of a comment, in the order in which `bot.report.comment` puts them together; page and terminal show them
too."""
