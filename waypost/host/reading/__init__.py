"""What the reading verbs know and say, with and without a host: logs in words, and the answers to "why?"."""
