"""What `waypost top --json` prints, a record for each deployment; its fields stay as they are, others may come.

Times are ISO 8601 UTC with milliseconds. What isn't known is null: nobody has counted it yet, or whoever counts has
ended.
"""

from waypost.host.answers.records import Answer


class TopRow(Answer, frozen=True, kw_only=True):
    """One deployment. ``state`` as in `waypost why`; ``code``: why it is down, or what hinders it, for programs.

    ``needed``: it doesn't go on before somebody acts; `waypost why` says how.

    ``waiting``: live runs by what they wait on (``approval``, ``mail``, ``timer``, ``step``, …); one that waits on two
    kinds is counted for each. ``queued``: mails that no run has yet. ``outbox``: mails on their way out.
    ``flush_p99``: seconds, of the last thousand flushes. ``crash_budget``: exits that it takes until it is
    crash-looping. ``deadline``: the next timer or time limit.
    """

    deployment: str
    address: str
    state: str
    code: str
    reason: str
    needed: bool
    generation: int
    live: int | None
    waiting: dict[str, int] | None
    queued: int | None
    on_hold: int | None
    rejected: int | None
    outbox: int | None
    flush_p99: float | None
    crash_budget: int
    deadline: str | None


class Top(Answer, frozen=True, kw_only=True):
    """All deployments of a host, in the order of their names. ``observed``: whether there is somebody who counts."""

    at: str
    observed: bool
    deployments: tuple[TopRow, ...]
