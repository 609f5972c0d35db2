"""Deployed code: taken from somebody's folder, looked at in a child of its own, kept by its hash, materialised."""
