"""The host: one process that owns one data directory and runs its deployments.

    app          the composition root: Host.start, Host.close
    root         HostActor and its decision (root_logic): what is started, what is started again
    crew         the five actors of a deployment with their ports
    mailbus      the one door for mail, and its decision; spool, worker, maildir
    compiled     a child's code, compiled where every child can read it
    courier      one outbox on its way out, and its decision
    timeline     one line an event, for whoever looks
    clock        the timer thread; alarms; wires: the one I/O thread; child_log; guard
    datadir      where everything lies; lock, mounts, files
    describe     what a workflow declares, asked of a child; code_file, code_folder, code_source, imports: its tree
    deploying    that tree into the repository and a folder: deployed, materialise, precompile; redeploying: under way
    api, server  HTTP and JSON on a Unix socket; answers: its records
    source       what the reading verbs are answered from: live (a running host) or offline (the repositories)
    narrate, explain   events in words; why a run isn't moving

It imports actors, substrate and ipc; only the command line imports it.
"""
