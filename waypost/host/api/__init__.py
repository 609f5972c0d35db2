"""The host's API: doors over a Unix socket, and what keeps it small, private and patient."""
