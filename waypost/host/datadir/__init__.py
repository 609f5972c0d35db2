"""The data directory: one host's, private, locked, on a file system that keeps its promises."""
