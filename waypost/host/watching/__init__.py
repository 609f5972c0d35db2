"""Whoever looks on: timeline, tail, top, metrics, and the sinks of approvals. None of them can hold up a run."""
