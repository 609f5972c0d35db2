"""A world without mercy around one real host: senders, kills, power cuts, a full disk, stock git, readers, an operator.

``Torture.run`` lets it go on for so many seconds, then lets everything come to its end in peace; ``torture_check`` says
whether all promises were kept. The seed decides what each of the threads does; when it comes to do it is the machine's.
"""

import errno
import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from substrate.reader import Reader
from substrate.signing.keys import PublicKey
from waypost.cli.client import Client, Said
from waypost.host.answers.records import (
    Answer,
    CancelAsked,
    DeploymentDraining,
    DeploymentRecycling,
    DeploymentResumed,
    MailTaken,
    Runs,
    Signalled,
)
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import HostError, NoHost, Unanswered
from waypost.testing.disks import power_cut
from waypost.testing.mortal import MortalHost, Place, Stuck, workers_of
from waypost.testing.stores import git
from waypost.testing.torture_parts import FLOW, LIMITS, Sent, Tally, mail

PATIENCE = 180.0
"""Seconds in which everything must have come to its end when nobody disturbs it any more."""
_LOOKS = 5


class Torture:
    """One world, in a folder of its own: a host of so many deployments."""

    def __init__(self, folder: Path, seed: int, deployments: int = 1) -> None:
        self.data, self.books = DataDir(folder / "data"), folder / "books"
        self.tally = Tally()
        self._folder, self._seed = folder, seed
        self._over = threading.Event()
        self._full, self._record = folder / "disk-is-full", folder / "durable"
        self._still = threading.Lock()
        """Held by who changes the repository's files by stock git, and by who copies them."""
        self._host: MortalHost | None = None
        self.names = tuple(f"torture{number}" for number in range(1, deployments + 1))
        first, *others = (folder / f"{name}.py" for name in self.names)
        environment = {**os.environ, "BOOKS": str(self.books)}
        self._place = Place(folder / "data", first, environment, folder / "stderr", tuple(others))

    def repository(self, name: str) -> Path:
        """A deployment's."""
        return self.data.repo(name)

    @property
    def ledger(self) -> list[tuple[str, str]]:
        """(key, word) of each note."""
        file = self.books / "ledger"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(key, word) for key, _, word in (line.partition(" ") for line in lines)]

    def run(self, seconds: float, say: Callable[[str], None] = lambda _line: None) -> Tally:
        """Torture for so long, then let all of it end. Raises Stuck where it doesn't."""
        self.books.mkdir(parents=True)
        for name in self.names:
            (self._folder / f"{name}.py").write_text(FLOW.replace("NAME", name), encoding="utf-8")
        acts = (self._keep, self._kill, self._fill, self._git, self._look, self._operate, *[self._send] * 3)
        threads = [
            threading.Thread(target=self._guarded, args=(act, random.Random(f"{self._seed}/{number}"), number))  # noqa: S311 - a seed to be repeated
            for number, act in enumerate(acts)
        ]
        until = time.monotonic() + seconds
        for thread in threads:
            thread.start()
        while not self._over.wait(min(10.0, max(0.0, until - time.monotonic()))) and time.monotonic() < until:
            say(str(self.tally))
        self._over.set()
        for thread in threads:
            thread.join()
        self._full.unlink(missing_ok=True)
        self._come_to_an_end()
        return self.tally

    def _guarded(self, act: Callable[[random.Random, int], None], rng: random.Random, number: int) -> None:
        try:
            act(rng, number)
        except BaseException as failure:
            self.tally.broken.append(f"{act.__name__}: {type(failure).__name__}: {failure}")
            self._over.set()
            raise

    # --- the host ---

    def _keep(self, rng: random.Random, _number: int) -> None:
        """Start the host again whenever it is dead; before that, see now and then what a power cut would have left."""
        while not self._over.wait(0.02):
            host = self._host
            if host is None or not host.alive:
                if host is not None:
                    self._buried(host)
                    if rng.random() < 0.5:  # noqa: PLR2004 - a coin
                        self._cut_power()
                self._host = self._start()
        host = self._host
        if host is not None:
            host.kill()
            self._buried(host)

    def _start(self) -> MortalHost:
        self.tally.lives += 1
        options = ("--limits", LIMITS, "--full-while", str(self._full), "--record", str(self._record))
        return MortalHost(self._place, options)

    def _buried(self, host: MortalHost) -> None:
        status = host.end()
        # A first start on a full disk ends in words; whoever runs it starts it again.
        full = any(os.strerror(errno.ENOSPC) in line for line in host.lines)
        if status != -signal.SIGKILL and not (full and status == 1):
            raise Stuck(f"the host ended by itself, with status {status}: {host.lines[-10:]}")

    def _cut_power(self) -> None:
        """Nobody writes now: what was acknowledged must be in what syncs have made durable."""
        cut = self._folder / "cut.git"
        for name in self.names:
            known = self._known(name)
            if known:
                with self._still:
                    power_cut(self.repository(name), self._record, cut)
                self._holds(cut, known, "a power cut would have taken")
                shutil.rmtree(cut)
                self.tally.cuts += 1

    def _come_to_an_end(self) -> None:
        host = self._start()
        client, until = Client(self._place.data / "host.sock"), time.monotonic() + PATIENCE
        try:
            while not (host.ready and self._all_resumed(client) and self._all_ended(client)):
                if time.monotonic() > until or not host.alive:
                    raise Stuck(f"not all came to its end in {PATIENCE:g} s: {host.lines[-10:]}")
                host.hear(0.2)
        finally:
            status = host.end()
        if status:
            raise Stuck(f"the host ended with status {status}")

    def _all_ended(self, client: Client) -> bool:
        with suppress(NoHost, Unanswered):
            rows = client.get(Runs, "runs").runs
            return all(row.state in {"completed", "failed", "parked", "cancelled"} for row in rows)
        return False

    def _all_resumed(self, client: Client) -> bool:
        """Nobody is held any more: what the operator drained at last may go on, too."""
        for name in self.names:
            refused = self._asked(client, DeploymentResumed, "deployments", name, "resume")
            if refused not in {"", "not-held"}:
                return False
        return True

    @staticmethod
    def _asked(client: Client, kind: type[Answer], *path: str, body: object = None, **query: str) -> str:
        """Why it wasn't done: a code, or "unanswered"; empty where it was."""
        try:
            client.post(kind, *path, body=b"" if body is None else json.dumps(body).encode(), **query)
        except Said as said:
            return said.code
        except HostError:
            return "unanswered"
        return ""

    # --- the operator ---

    def _operate(self, rng: random.Random, _number: int) -> None:
        """Fresh processes, drains, cancelled runs; what the host refuses or dies of is asked for another time."""
        client = Client(self._place.data / "host.sock")
        while not self._over.wait(rng.uniform(0.2, 2.0)):
            name = rng.choice(self.names)
            match rng.choice(("recycle", "drain", "cancel")):
                case "recycle":
                    refused = self._asked(
                        client, DeploymentRecycling, "deployments", name, "recycle", body={"reason": "torture"}
                    )
                    self.tally.steered += not refused
                case "drain":
                    refused = self._asked(client, DeploymentDraining, "deployments", name, "drain")
                    self.tally.steered += not refused
                    self._over.wait(rng.uniform(0.05, 1.0))
                    self._asked(client, DeploymentResumed, "deployments", name, "resume")
                case _:
                    if self.tally.sent:
                        run = rng.choice(self.tally.sent[-20:]).run
                        self.tally.cancelled.add(run)
                        self._asked(client, CancelAsked, "runs", run, "cancel", body={"reason": "torture"})

    # --- what disturbs it ---

    def _kill(self, rng: random.Random, _number: int) -> None:
        while not self._over.wait(rng.uniform(0.1, 3.0)):
            host = self._host
            # One of ten dies while it starts; on a busy machine all of them might, and nothing would ever come in.
            if host is None or not host.alive or not (host.ready or rng.random() < 0.1):  # noqa: PLR2004 - see there
                continue
            if rng.random() < 0.5:  # noqa: PLR2004 - a coin
                host.kill()
                self.tally.kills += 1
            else:
                for pid in workers_of(host.pid):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        self.tally.child_kills += 1

    def _fill(self, rng: random.Random, _number: int) -> None:
        while not self._over.wait(rng.uniform(2.0, 8.0)):
            self._full.touch()
            self.tally.full += 1
            self._over.wait(rng.uniform(0.2, 2.0))
            self._full.unlink()

    def _git(self, rng: random.Random, number: int) -> None:
        clone = self._folder / f"clone{number}"
        while not self._over.wait(rng.uniform(0.5, 4.0)):
            repository = self.repository(rng.choice(self.names))
            if not repository.is_dir():
                continue
            match rng.choice(("gc", "repack", "clone", "fsck")):
                case "gc":
                    with self._still:
                        git(repository, "gc", "--quiet", "--prune=now", check=False)
                case "repack":
                    with self._still:
                        git(repository, "repack", "-a", "-d", "-q", check=False)
                case "clone":
                    git(self._folder, "clone", "-q", "--mirror", "--no-local", str(repository), str(clone))
                    self._sound(clone)
                    shutil.rmtree(clone)
                case _:
                    self._sound(repository)
            self.tally.gits += 1

    def _sound(self, repository: Path) -> None:
        """What git finds wrong again and again is: once it may be a pack that a merge has just taken away from it."""
        said = ""
        for _ in range(_LOOKS):
            said = git(repository, "fsck", "--strict", "--no-progress", check=False)
            if not any(word in said for word in ("error", "fatal", "missing")):
                return
        self.tally.broken.append(f"git fsck, {_LOOKS} times: {said}")
        self._over.set()

    def _look(self, rng: random.Random, _number: int) -> None:
        """Read from outside, whether or not a host lives: what was acknowledged before is there."""
        while not self._over.wait(rng.uniform(0.3, 2.0)):
            name = rng.choice(self.names)
            known = self._known(name)
            if known:
                self._holds(self.repository(name), known, "a reader doesn't find")
                self.tally.reads += 1

    def _known(self, name: str) -> dict[int, str]:
        """What of a deployment has been acknowledged by now: run by arrival."""
        sent = [each for each in list(self.tally.sent) if each.deployment == name]
        # A reply to a run that was cancelled before it was taken up has become another run's.
        return {each.arrival: each.run for each in sent if each.run not in self.tally.cancelled}

    def _holds(self, repository: Path, known: dict[int, str], words: str) -> None:
        reader = Reader.open(repository, PublicKey.load(self.data.public_key))
        found = {line.entry.arrival: line.entry.run for line in reader.queue(consumed=True)}
        lost = {
            arrival: run
            for arrival, run in known.items()
            if found.get(arrival) != run and run not in self.tally.cancelled
        }
        if lost:
            self.tally.broken.append(f"{words} what was acknowledged: {lost}")
            self._over.set()

    # --- who writes to it ---

    def _send(self, rng: random.Random, number: int) -> None:
        """One mail after the other, each tried until it is acknowledged; some twice, some in answer to one before."""
        client = Client(self._place.data / "host.sock")
        done: list[tuple[str, bytes]] = []
        waiting: list[tuple[str, str]] = []
        for count in range(1 << 62):
            to, name, kind = rng.choice(self.names), f"{number}.{count}", ""
            if waiting and rng.random() < 0.5:  # noqa: PLR2004 - a coin
                to, before = waiting.pop()
                raw = mail(to, name, "answer", answers=before)
            elif done and rng.random() < 0.1:  # noqa: PLR2004 - one of ten
                to, raw = rng.choice(done)
            else:
                kind = rng.choice(("plain", "plain", "large", "sleep", "wait", "signal"))
                raw = mail(to, name, kind)
                if kind == "wait":
                    waiting.append((to, name))
            run = self._acknowledged(client, to, raw, rng)
            if not run or (kind == "signal" and not self._signalled(client, run, f"{name}.s", rng)):
                return
            done.append((to, raw))

    def _acknowledged(self, client: Client, to: str, raw: bytes, rng: random.Random) -> str:
        """The mail's run; none when it is over."""
        name = raw.partition(b"Message-ID: <")[2].partition(b"@")[0].decode()
        while not self._over.wait(rng.uniform(0.0, 0.05)):
            try:
                taken = client.post(MailTaken, "mail", f"{to}@example.com", body=raw, content_type="message/rfc822")
            except (NoHost, Unanswered, Said, HostError):
                continue
            if taken.outcome not in {"enqueued", "already-present"}:
                raise Stuck(f"mail {name} came to be {taken.outcome}")
            self.tally.sent.append(Sent(name, taken.arrival, taken.run, to))
            return taken.run
        return ""

    def _signalled(self, client: Client, run: str, word: str, rng: random.Random) -> bool:
        """Send its signal until that is acknowledged, or its run has ended; False when it is over."""
        while not self._over.wait(rng.uniform(0.0, 0.05)):
            match self._asked(client, Signalled, "runs", run, "signals", "go", body=word, id=word):
                case "":
                    self.tally.signalled.append((run, word))
                    return True
                case "ended":
                    return True
                case _:
                    continue
        return False
