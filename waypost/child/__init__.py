"""The spawned program: runs a user's workflow against its log. ``python -P -X utf8 -m waypost.child``.

program.py    one run's code as the runtime sees it: turns and outcomes
lanes.py, loop.py   an ``async def`` run: task identity, the deterministic loop     thread_run.py   a ``def`` run
load.py       a user's file becomes a module and a Workflow

Imports the authoring API, ipc and the model; never the host, which it reaches by frames alone.
"""
