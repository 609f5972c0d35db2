"""What a thread of a child has to say is said, or the process ends: nobody waits for a word that can't come any more.

Where memory runs out, it runs out in any thread: one that takes frames in would leave its child deaf, and every run of
it waiting; one that ran a step would leave it at work for ever. The end of a process is seen, and what follows it is
decided by the host.
"""

import os
from collections.abc import Callable


def or_end(work: Callable[[], object]) -> None:
    """Do what a thread is for; whatever it raises ends this process, with the traceback as its last words."""
    try:
        work()
    except BaseException:  # noqa: BLE001 - whatever it is, this thread says nothing any more
        try:
            import traceback  # where there is one

            traceback.print_exc()
        finally:
            os._exit(os.EX_SOFTWARE)
