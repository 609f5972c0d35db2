"""Repositories of the reference system ("interchange"), read and brought over into ours.

    errors      what can't be read, or not taken
    source      read-only git: branches, trees, files, each with a limit
    records     its JSON: events, queue entries, grants
    runs        one run's directory: its log and what lies beside it
    queue       its queue: what waits, what was consumed, the mails' bytes in its history
    survey      all of it looked at, before anything is made
    words       one of its events in our words                                                   (pure)
    rebuilt     a mail made again from what was recorded of it                                   (pure)
    log         a run's new log in the making: numbered, chained, legal                          (pure)
    arrivals    the moves of imported mail through our queue                                     (pure)
    bring       a whole new repository, from a survey

Nothing is written into the source. What can't be taken over is listed with its path and a reason, never dropped.
"""

SYSTEM = "interchange"
"""What imported runs say they come from."""
