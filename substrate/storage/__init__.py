"""One repository on disk: journal, flush, seal, merge, and what is made of it after a crash (storage §2, §3)."""
