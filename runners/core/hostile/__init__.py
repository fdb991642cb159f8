"""Handle texts and folders of hostile code, whatever their depth."""
