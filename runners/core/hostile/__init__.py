"""Handle texts and folders of hostile code that may have any depth."""
