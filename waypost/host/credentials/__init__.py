"""Credentials and model sources: where they are, how they are read, and who is given them."""
