"""Reading without a host: the repositories themselves, as of their last acknowledged write. No file is touched."""

from collections.abc import Collection
from functools import cached_property, lru_cache
from pathlib import Path

from substrate.checking.verify import Expected, by_note, by_receipt, verify
from substrate.errors import BadKey, NoSuchRun, RepositoryGone, RolledBack, SubstrateError, Unreadable
from substrate.messages import Approval, Kept, LogPage, Planned, RejectedPage, RunLine
from substrate.reader import Facts, Reader
from substrate.signing.epoch import Noted
from substrate.signing.keys import PublicKey
from substrate.signing.receipt import Claim, Receipt, issue
from substrate.storage.heads import read_note
from waypost.host.answers.records import DeploymentVerified, Finding, Verified
from waypost.host.datadir.directory import DataDir, refuse_unfinished
from waypost.host.datadir.signing import key_of
from waypost.host.errors import NoDataDirectory, NoKey
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.reading.explain import Situation
from waypost.model.ids import RunId
from waypost.model.limits import DEFAULT, Limits

_OPEN = 8
"""Repositories that are held open at once, each with the descriptors of its packs: there may be thousands."""


class Offline:
    """A ``Source`` over the data directory, each repository at a moment of its own, but those ``without``."""

    def __init__(self, data: DataDir, limits: Limits = DEFAULT, without: Collection[str] = ()) -> None:
        self._data, self._limits, self._without = data, limits, without
        self._reader = lru_cache(maxsize=_OPEN)(self._opened)
        self._situation = lru_cache(maxsize=None)(self._situated)  # of one moment, as the reader is

    def situations(self) -> tuple[Situation, ...]:
        """Every deployment that has a repository here, or had one; what is wrong with one is said where it is read."""
        names = {*self._data.deployments(), *self._data.noted()}
        return tuple(self._situation(name) for name in sorted(names) if name not in self._without)

    def runs(self, deployment: str, limit: int, before: RunId | None = None) -> tuple[RunLine, ...]:
        """Runs of a deployment, newest first."""
        return self._reader(deployment).runs(limit, before)

    def page(self, deployment: str, run: RunId, after: int) -> LogPage | None:
        """Events of a run after a seq."""
        try:
            return self._reader(deployment).page(run, after=after, limit=self._limits.page)
        except NoSuchRun:
            return None

    def approvals(self, deployment: str) -> tuple[Approval, ...]:
        """Open approvals, oldest run first."""
        return self._reader(deployment).approvals()

    def on_hold(self, deployment: str, limit: int) -> tuple[Kept, ...]:
        """Mails on hold, oldest first."""
        return self._reader(deployment).on_hold(limit)

    def rejected(self, deployment: str, cursor: tuple[int, int] | None) -> RejectedPage:
        """Mails that were rejected, a page."""
        return self._reader(deployment).rejected(cursor)

    def schedules(self, deployment: str) -> tuple[Planned, ...]:
        """The cron schedules of a deployment."""
        return self._reader(deployment).schedules()

    def _situated(self, name: str) -> Situation:
        try:
            noted = read_note(self._data.head(name))  # before the repository: it may be ahead of this, never behind
            if noted is not None and not self._data.repo(name).exists():
                return _set_back(name, "", f"its repository is gone; it had reached {noted}")
            facts, deployed = self._reader(name).facts(), self._reader(name).deployed()
        except (SubstrateError, OSError) as failure:
            why = failure.message if isinstance(failure, SubstrateError) else str(failure)
            return Situation(name=name, address="", hosted=False, state="unreadable", reason=why)
        missing = "" if noted is None else _missing(facts, noted)
        if missing:
            return _set_back(name, facts.address, missing)
        return _resting(name, facts, "FILE" if deployed is None else "")

    def _opened(self, deployment: str) -> Reader:
        path = self._data.repo(deployment)
        noted = None if path.exists() else read_note(self._data.head(deployment))
        if noted is not None:
            raise RepositoryGone(str(path), str(noted))
        try:
            return Reader.open(path, self._key)
        except OSError as failure:
            raise Unreadable.by(failure, str(path)) from failure

    @cached_property
    def _key(self) -> PublicKey:
        return public_key(self._data)


def _missing(facts: Facts, noted: Noted) -> str:
    """What was noted outside of the repository and isn't in it, as far as its last flush tells; mostly nothing is."""
    if facts.repository != noted.repository:
        return "it is another repository than the one that was here"
    if (facts.epoch, facts.flush) < (noted.epoch, noted.flush):
        return f"its history went back from flush {noted.flush} to flush {facts.flush}"
    if (facts.epoch, facts.flush) == (noted.epoch, noted.flush) and facts.flush_hash != noted.hash:
        return f"its history was replaced: {noted} is not in it"
    return ""


def _set_back(name: str, address: str, why: str) -> Situation:
    return Situation(name=name, address=address, hosted=False, state="down", code="rolled-back", reason=why)


def _resting(name: str, facts: Facts, file: str) -> Situation:
    """How a deployment is that nobody runs, as its repository says. ``file``: what a host is to be given for it."""
    latch, drain = facts.latch, facts.drain
    state = reason = code = since = ""
    if facts.held:
        state, since = "held", facts.held_at
    elif latch:
        state, reason, code, since = "down", latch.detail, latch.reason, latch.at
    elif drain:
        state, reason, since = "draining", f"as {drain.by} wants it", drain.at
    return Situation(
        name=name,
        address=facts.address,
        hosted=False,
        state=state,
        reason=reason,
        code=code,
        since=since,
        file=file,
    )


def public_key(data: DataDir) -> PublicKey:
    """The host's public key. Raises NoDataDirectory, UnfinishedExchange, BadKey."""
    refuse_unfinished(data)
    try:
        return PublicKey.load(data.public_key)
    except FileNotFoundError:
        if data.deployments():
            return key_of(data).public
        raise NoDataDirectory(str(data.public_key), "the host's public key is not there") from None


def addresses(data: DataDir) -> tuple[dict[str, str], tuple[str, ...]]:
    """Every address that has a repository here, with its deployment; and the deployments that can't be read."""
    if not data.deployments():
        return {}, ()
    found, unread = dict[str, str](), list[str]()
    key = public_key(data)
    for name in data.deployments():
        try:
            found[Reader.open(data.repo(name), key).facts().address] = name
        except SubstrateError:
            unread.append(name)  # what is wrong is said by the verbs that read
    return found, tuple(unread)


def load_key(path: Path) -> PublicKey:
    """A public key that somebody trusts. Raises NoKey."""
    try:
        return PublicKey.load(path, pipe=True)  # `--key <(ssh-keygen -y -f KEY)`
    except OSError as failure:
        raise NoKey(str(path), failure.strerror or str(failure)) from failure
    except BadKey as bad:
        raise NoKey(str(path), bad.why) from bad


def check(data: DataDir, key: PublicKey, *, isolation: str = "") -> Verified:
    """Verify every repository here with this key. Raises NotARepository."""
    found = tuple(_checked(data.repo(name), key, _noted(data, name)) for name in data.deployments())
    return Verified(isolation=isolation, deployments=found)


def check_one(repository: Path, key: PublicKey | None, receipt: Receipt | None = None) -> Verified:
    """Verify one repository, or a clone of one. Raises NotARepository."""
    expected = () if receipt is None else (by_receipt(receipt),)
    return Verified(isolation=None, deployments=(_checked(repository, key, expected),))


def receipt_for(data: DataDir, name: str, at: str) -> Receipt:
    """The host's signed word on how far a deployment's repository is; nothing is changed.

    Raises NoSuchDeployment, RolledBack and other SubstrateErrors, OSError.
    """
    if name not in data.deployments():
        raise NoSuchDeployment(name, data.deployments())
    key = key_of(data)
    noted = read_note(data.head(name))  # before the repository, as above
    facts = Reader.open(data.repo(name), key.public).facts()
    if noted is not None and _missing(facts, noted):  # whoever had it could say later that nothing is missing
        back, another = facts.flush < noted.flush, facts.repository != noted.repository
        found = f"flush {facts.flush} {facts.head}"
        raise RolledBack(str(data.repo(name)), str(noted), found, went_back=back, another=another, still_there=None)
    claim = Claim(
        deployment=name,
        repository=facts.repository,
        epoch=facts.epoch,
        flush=facts.flush,
        hash=facts.flush_hash,
        at=at,
    )
    return issue(claim, key)


def _noted(data: DataDir, name: str) -> tuple[Expected, ...]:
    """What this data directory knows of how far the repository must reach; read before the repository is."""
    noted = read_note(data.head(name))
    return () if noted is None else (by_note(noted),)


def _checked(repository: Path, key: PublicKey | None, expected: tuple[Expected, ...]) -> DeploymentVerified:
    report = verify(repository, key, expected)
    return DeploymentVerified(
        deployment=report.deployment or repository.name,
        sound=report.sound,
        signer=report.signer,
        pinned=report.pinned,
        repository=report.repository,
        flushes=report.flushes,
        commits=report.commits,
        runs=report.runs,
        events=report.events,
        epoch=report.epoch,
        signers=report.signers,
        earlier=report.earlier,
        reach=report.reach,
        faults=tuple(Finding(commit=fault.commit, path=fault.path, fault=fault.what) for fault in report.faults),
    )
