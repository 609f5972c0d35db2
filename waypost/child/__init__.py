"""The spawned program: runs a user's workflow against its log. ``python -P -X utf8 -m waypost.child``.

__main__.py         the order of the start; describe.py the keyless ``--describe``; load.py a file becomes a Workflow
program.py          one run's code as the runtime sees it: turns and outcomes
lanes.py, loop.py   an ``async def`` run: task identity, the deterministic loop     thread_run.py   a ``def`` run
replay.py           one call: what the code wants, matched with the log (pure)      calls.py        all calls of a run
drive.py            one run: events in, effects out (effects.py, outcomes.py, faults.py: the data between)
bodies.py           where step bodies run; async_bodies.py their event loop
runtime.py          the workflow thread: notes (mailbox.py) to drives, effects to the wire (wire.py) and the bodies

Imports the authoring API, ipc and the model; never the host, which it reaches by frames alone.
"""
