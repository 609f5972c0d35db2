"""The host: one process that owns one data directory and runs its deployments.

    app            the composition root: Host.start, Host.close; beside it clock with alarms, errors, exits
    root/          the root of the actors: what is started, kept asleep, woken, exchanged and ended
    api/           the doors over the socket; answers/: the records that they answer
    mail/          the one door for mail, the spool, the couriers
    code/          deployed code: taken, looked at, kept, materialised
    credentials/   secrets and model sources, and the keeper who alone has them
    processes/     isolation, users, the one I/O thread, the guardian
    datadir/       the data directory: private, locked
    watching/      whoever looks on: timeline, tail, top, metrics, sinks of approvals
    reading/       what the reading verbs know and say, and the answers to "why?"
    keeping/       backups, restores, imports

What is refused is in the folders' errors, and an exit status for each in exits. The host imports actors, substrate and
ipc; only the command line imports it.
"""
