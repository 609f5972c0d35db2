"""The command line: arguments to calls, answers to text, errors to exit codes. The only place that prints.

    main       the entry point
    command    one command line: errors and exit codes
    app        the application and the options that many verbs have (typer)
    commands_*   the verbs, a module for each group of the help; verbs: the groups
    client     the host's API over its socket
    words      answers as text

What a verb does is in the module that its function imports, such as ``reading`` (runs, show, log, verify), ``writing``
(send, approve, reject, resume), ``keeping`` (backup, restore, receipt, …) and ``running`` (run).

Everything heavy is imported by the verb that needs it: ``waypost --help`` stays quick.
"""
