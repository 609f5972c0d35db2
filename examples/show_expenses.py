"""Shows the expenses example from its first mail to its verified history, on real parts, in a few seconds.

    python examples/expenses.py [DATA]

DATA is a data directory that stays; by default one is made for the time of the show. Everything below is done with the
`waypost` command, as you would do it.
"""

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from waypost.testing.host_process import HostProcess, waypost

HERE = Path(__file__).resolve().parent
MAIL = HERE / "mail"
ADDRESS = "expenses@example.com"


def say(text: str) -> None:
    """A heading of the show."""
    print(f"\n# {text}", flush=True)


def verb(host: HostProcess, *arguments: str, mail: str = "") -> str:
    """Run a verb and show it, with what it answers; the show ends where one fails."""
    shown = f" < examples/mail/{mail}" if mail else ""
    print(f"$ waypost {shlex.join(arguments)}{shown}", flush=True)
    done = host.verb(*arguments, stdin=(MAIL / mail).read_bytes() if mail else b"")
    print(done.stdout, done.stderr, sep="", end="", flush=True)
    if done.returncode:
        sys.exit(done.returncode)
    return next((word for word in done.stdout.split() if word.startswith("run_")), "")


def play(data: Path) -> None:
    """The show itself."""
    books = data.parent / "books"
    books.mkdir()
    books.chmod(0o1777)  # a host of root's gives the workflow a user of its own, who is to write there, too
    ledger = books / "ledger.jsonl"
    host = HostProcess(
        HERE / "expenses.py",
        data=data,
        env={"EXPENSES_LEDGER": str(ledger)},
        options=("--writes", str(books)),
        echo=lambda line: print(f"    | {line}", flush=True),
    )
    say("A host, in a process of its own; what it says is marked with |")
    with host:
        say("A small claim is paid at once")
        verb(host, "send", ADDRESS, mail="claim-small.eml")
        host.wait_for("completed")

        say("A large one waits for the boss, who answers by mail")
        verb(host, "send", ADDRESS, mail="claim-large.eml")
        host.wait_for("waits for boss@example.com")
        verb(host, "send", ADDRESS, mail="boss-yes.eml")
        host.wait_for("completed")

        say("Another one, approved on the command line")
        run = verb(host, "send", ADDRESS, mail="claim-hotel.eml")
        host.wait_for("waits for boss@example.com")
        verb(host, "why", run)
        verb(host, "approve", run, "--comment", "enjoy Zurich")
        host.wait_for("completed")

        say("What it did")
        verb(host, "show", run)
        verb(host, "runs")

        say("Ctrl-C")
    finished(data, ledger)


def finished(data: Path, ledger: Path) -> None:
    """What is left: money, mail, and a history that anybody can read and check."""
    say("The ledger, one line a claim; the outgoing Maildir")
    print(ledger.read_text(encoding="utf-8"), end="")
    print(f"{len(list((data / 'out' / 'new').iterdir()))} mails in {data / 'out' / 'new'}")

    say("The history, with plain git")
    repository = data / "repos" / "expenses.git"
    print(f"$ git -C {repository} log --oneline --reverse log", flush=True)
    history = ["git", "-C", str(repository), "log", "--oneline", "--reverse", "log"]
    subprocess.run(history, check=True)  # noqa: S603 - git as you have it, on a folder of our own

    say("And verified, without a host")
    done = waypost("verify", data=data)
    print(done.stdout, done.stderr, sep="", end="", flush=True)
    sys.exit(done.returncode)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        play(Path(sys.argv[1]))
    else:
        made = Path(tempfile.mkdtemp(prefix="waypost-"))
        try:
            play(made / ".waypost")
        finally:
            shutil.rmtree(made)
