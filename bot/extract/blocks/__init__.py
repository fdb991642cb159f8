"""Parse Markdown into code blocks and prose, and tell the kinds of text apart. Start with `markdown`."""
