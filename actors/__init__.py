"""The five actors of a deployment: what they say (`messages`), how they decide (`logic`), the threads around it.

Reading order: `messages`; then for each actor its decision in `logic/` and its shell beside this file: `supervisor`
(the lifecycle), `child_process` (one child), `dispatch` (mail to runs), `scheduler` (timers), `terminal` (watchers).
Decisions are pure; the five don't import each other: the host hands each the refs and ports that it needs (`Crew`).
"""

from actors.child_process import ChildProcessActor
from actors.dispatch import DispatchActor
from actors.scheduler import SchedulerActor
from actors.supervisor import SupervisorActor
from actors.terminal import TerminalBroadcasterActor

__all__ = ["ChildProcessActor", "DispatchActor", "SchedulerActor", "SupervisorActor", "TerminalBroadcasterActor"]
