"""Cut blocks, and code without a fence, into pieces of one kind each. Start with `document.split_document`."""
