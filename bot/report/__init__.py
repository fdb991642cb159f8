"""Show a report as comment, HTML page and JSON, and make strangers' words safe to show.

Start with `assemble.assemble_report`, which makes the report, and `comment.list_sections`, which orders the parts of
a comment. Every word of an issue or a testcase passes `quote` before it is shown.
"""
