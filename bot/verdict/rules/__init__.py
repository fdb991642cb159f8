"""The rules of `bot.verdict.judge`: each module answers one of its questions, or adds one kind of caveat.

docs/verdict-rules.md lists the rules.
"""
