"""A step that leaves processes behind in every way there is; nothing of it ends by itself."""

import ctypes
import os
import subprocess
import sys
import time

from waypost import Mail, Workflow, progress

flow = Workflow("leaves", address="leaves@example.com", runs="message", env=["LEAVES_FLEEING"])
WAITS = "import signal; signal.pause()"

# The kernel no longer ends this process with its host. Here, because it is asked for by each thread.
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)


@flow.step
def leave(mail: Mail) -> None:
    subprocess.Popen([sys.executable, "-c", WAITS, "in-the-group"], env={})
    subprocess.Popen([sys.executable, "-c", WAITS, "in-a-session"], start_new_session=True)
    subprocess.Popen([sys.executable, "-c", WAITS, "in-hiding"], start_new_session=True, env={})
    if (middle := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(60)
        os._exit(0)
    os.waitpid(middle, 0)
    if "LEAVES_FLEEING" in os.environ:
        os.open(os.environ["LEAVES_FLEEING"], os.O_WRONLY)  # its end is the end of all of them
        if os.fork() == 0:
            os.setsid()
            while True:  # each of them is there for a moment
                if os.fork():
                    os._exit(0)
    progress("everything is left behind")
    time.sleep(3600)


@flow.run
async def go(mail: Mail) -> None:
    await leave(mail)
