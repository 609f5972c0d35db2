"""The spawned program: runs a user's workflow against its log. ``python -P -X utf8 -m waypost.child``.

__main__.py         the order of the start (arguments.py); describe.py, blame.py the keyless ``--describe``; probe.py
load.py             a file becomes a Workflow; deployed.py: the tree that was hashed before any of it runs
entry.py            the function that a run begins with: the workflow's, or one of its children
program.py          one run's code as the runtime sees it: turns and outcomes
lanes.py, loop.py   an ``async def`` run: task identity, the deterministic loop     thread_run.py   a ``def`` run
replay.py           one call: what the code wants, matched with the log (pure)      calls.py        all calls of a run
drive.py            one run: events in, effects out (effects.py, outcomes.py, faults.py: the data between); beside it
                    phase.py (where it stands), blobs.py (its large values), resting.py (what its log knows of it)
bodies.py           where step bodies run; async_bodies.py their event loop
runtime.py          the workflow thread: notes (mailbox.py) to drives, effects to the bodies and the wire (wire.py,
                    asking.py, sending.py); keeping.py, starved.py, vault.py: room for values, threads, credentials
serving.py          all of these together, once the child is ready

Imports the authoring API, ipc and the model; never the host, which it reaches by frames alone.
"""
