"""What the host's API answers, as records: the host fills them in, the command line and `--json` show them."""
