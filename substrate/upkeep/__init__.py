"""What is done to a repository that no host has open: another key, another epoch, what is left of a damaged one."""
