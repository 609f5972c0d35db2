"""What the API answers about cron schedules: which there are, how far each has come, and when it is due next."""

from waypost.host.answers.records import Answer, Unread


class DueTick(Answer, frozen=True, kw_only=True):
    """A tick to come. ``due`` is UTC; ``local`` what the zone's clock shows then, with its offset.

    ``note``: empty as a rule; what the clock does to it where it is set at about that time.
    """

    due: str
    local: str
    note: str = ""


class ScheduleShown(Answer, frozen=True, kw_only=True):
    """A schedule. ``state``: ``due``, or why it isn't as it should be, and then ``why`` says it, and ``command`` helps.

    ``no-zone``: its zone is unknown here, so nothing is due; ``stopped``: its deployment doesn't run, and a tick is
    late until it does; ``late``: the next one was due already; ``ahead``: the clock was set back behind the last tick;
    ``waiting``: ticks wait for ``run``, which the one before began. ``fate``: what became of ``last``, as in
    ``schedules/<id>.json``; ``run`` is the one of the newest tick that has a mail.
    """

    deployment: str
    schedule: str
    expression: str
    tz: str
    gap: str
    repeat: str
    catch_up: str | int
    overlap: str
    since: str
    last: str = ""
    fate: str = ""
    run: str = ""
    waiting: tuple[str, ...] = ()
    next: tuple[DueTick, ...] = ()
    state: str
    why: str = ""
    command: str = ""


class SchedulesShown(Answer, frozen=True, kw_only=True):
    """The answer of ``waypost schedule list`` and ``next``, the next one first; ``zones``: the zone database's release.

    With an expression that was only to be tried, ``deployment`` and ``since`` are empty.
    """

    schedules: tuple[ScheduleShown, ...]
    zones: str
    unread: tuple[Unread, ...] = ()
