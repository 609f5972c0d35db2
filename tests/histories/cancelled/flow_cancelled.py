"""A run that asks for its own end, and cleans up."""

from waypost import Workflow, cancel, sleep

cancelled = Workflow("cancelled", address="cancelled@example.com")


@cancelled.step
def reserve(what: str) -> str:
    """Something to be undone."""
    return f"reserved {what}"


@cancelled.step
def release(what: str) -> str:
    """Undo it."""
    return f"released {what}"


@cancelled.run
def run() -> None:
    """Nothing comes of it."""
    _ = reserve("a seat")
    _ = sleep("10m")
    try:
        _ = cancel("sold out")
    finally:
        _ = release("a seat")
