"""Parse Markdown into code blocks and prose, and classify the text. Start with `markdown`."""
