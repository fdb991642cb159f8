"""The parts of a comment, in the order in which `bot.comment` puts them together; page and terminal show them too."""
