"""Sections of a comment, in the order of `bot.report.comment.list_sections`. Page and terminal show them too."""
