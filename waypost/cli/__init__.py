"""The command line: arguments to calls, answers to text, errors to exit codes. The only place that prints.

    main       the entry point
    command    one command line: errors and exit codes
    commands   the verbs and their options (typer)
    client     the host's API over its socket
    reading    runs, show, log, why, verify: with a host or without
    writing    send, approve, reject, resume
    keeping    accept-rollback, receipt, rotate-key, backup, restore
    running    run: the host in the foreground
    words      answers as text

Everything heavy is imported by the verb that needs it: ``waypost --help`` stays quick.
"""
