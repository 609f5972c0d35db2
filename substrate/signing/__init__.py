"""Keys, signatures, and who may sign from when on: whose a history is (storage §3)."""
