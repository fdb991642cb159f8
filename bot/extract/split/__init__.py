"""Cut blocks, and code without a fence, into pieces of one kind each. Start with `document.split_document`.

Interactive sessions, notebook cells, here-documents and output pasted below code are separated here.
"""
