"""The host: one process that owns one data directory and runs its deployments.

    start          app (the composition root: Host.start, Host.close), datadir, lock, files, own, mounts, descriptors
    actors         messages; root (what is started, and started again: root_*, slots), crew (a deployment's five)
    mail           mailbus* (the one door for mail), courier (an outbox on its way out; stuck), spool, maildir, worker
    threads        clock with alarms, wires (the I/O of all children; child_wire), child_log
    code           describe (asked of a child), code_* and imports (its tree), deploying, deployed, materialise,
                   compiled, precompile, staging, toml_file; redeploying: under a host that runs
    isolation      isolation, sight; users, reserved, sweeping, guest (a user for each); guard, kin, guardian, guarding
    credentials    keeper and keeper_*, credentials_file, providers, credential_*; granted: grants
    API            server, reach, patience (its socket); api, doors, *_doors (its endpoints); bodies, audience;
                   answers, *_answers (its records)
    reading        source; live over hosted (a running host), offline (the disk), beside (both), library
    words          narrate (events), reasons with explain, *_why (why something waits), status, queued, schedules
    looking on     timeline, observer, sink (approvals), following (tail): each with its *_logic, and its seat (seats);
                   looking, top, metrics, metrics_server, histogram
    sleep          notes (for the next start), held
    keeping        alone, once (without a host), backup, packing, restore, checking, importing, git

What is refused is in errors and *_errors, and an exit status for each in exits. The host imports actors, substrate and
ipc; only the command line imports it.
"""
