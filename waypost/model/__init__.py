"""What host and child share: values, and pure functions over them. The bottom layer: it imports nothing else of ours.

    events     the vocabulary of a run's log: event_parts, mail_events, child_events
    run        a run's state, folded from its log: ledger, opened; from it waiting, deadlines, attempts
    values     what a step returns, as JSON and back
    mail       reading and writing mail: the modules mail_*, address, signals; queue: an accepted mail's entry
    schedule   when a cron schedule is due: cron, zones
    grants     what a step may do; reference_grants
    code       a tree of code; declaration: what a workflow file declares; installed, imported
    why        one sentence on why something isn't further
    ids, times, limits, errors     names, clocks, bounds, the root of all errors

Reading order: ids, events, run, ledger.
"""
