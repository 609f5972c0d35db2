"""Processes of the machine: isolation, users, the one I/O thread, and whoever ends what is left over."""
