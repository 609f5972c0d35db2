"""The metrics in Prometheus' text format, by prometheus-client: made anew for each scrape from what is known already.

Nothing is registered with prometheus-client's own registry. Labels are names of deployments and words from fixed lists,
never anything from a mail. What isn't known has no sample: a nought would be a lie. ``docs/metrics.md`` lists them all.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from waypost import __version__
from waypost.host.messages import Deployed
from waypost.host.watching.histogram import BOUNDS, NONE, Histogram
from waypost.host.watching.observer_logic import LEGS, State, Watched
from waypost.host.watching.top import LATCHED
from waypost.model.ids import Deployment
from waypost.model.limits import Limits
from waypost.model.times import Now

__all__ = ["CONTENT_TYPE_LATEST", "Scrape"]

STATES = (
    "backing-off", "dormant", "down", "draining", "held", "idle", "recycling", "running", "starting", "stopped",
    "stopping",
)  # fmt: skip
"""Of deployments, each of which has a sample; any other one has one when it occurs."""
OUTCOMES = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape(Collector):
    """What is known at one moment. ``observed`` is None where the observer has ended."""

    deployed: tuple[Deployed, ...]
    observed: State | None
    dropped: int
    limits: Limits
    now: Now
    process: Collector = field(default_factory=lambda: ProcessCollector(registry=None))

    def page(self) -> bytes:
        """The page, UTF-8."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Every metric with its samples."""
        info = _gauge("waypost_build_info", "The version of the host; always 1.", "version")
        info.add_metric((__version__,), 1)
        yield info
        yield _gauge("waypost_observer_up", "Whether the observer is at work.", value=int(self.observed is not None))
        yield _gauge("waypost_threads", "Threads of the host's process.", value=threading.active_count())
        yield _total("waypost_marks_dropped", "Marks that the observer had no room for.", self.dropped)
        yield from self._described()
        if self.observed is not None:
            yield from _counted(self.observed)
            yield from _added_up(self.observed)
        yield from self.process.collect()

    def _described(self) -> Iterator[Metric]:
        states: dict[str, int] = {state: 0 for state in STATES}  # noqa: C420 - its keys are any text
        budget = _gauge("waypost_crash_budget", "Unasked exits that it takes until it is crash-looping.", "deployment")
        generation = _gauge("waypost_child_generation", "The number of its newest child.", "deployment")
        for each in self.deployed:
            description = each.description
            states[description.state] = states.get(description.state, 0) + 1
            left = 0 if description.code == LATCHED else description.budget.left(self.now.mono, self.limits)
            budget.add_metric((each.spec.name,), left)
            generation.add_metric((each.spec.name,), description.generation)
        deployments = _gauge("waypost_deployments", "Deployments by their state.", "state")
        for state, count in states.items():
            deployments.add_metric((state,), count)
        yield from (deployments, budget, generation)


def _counted(state: State) -> Iterator[Metric]:
    """What the repositories have counted, as of the last change."""
    waiting = _gauge("waypost_runs_waiting", "Live runs that wait on something of this kind.", "deployment", "kind")
    live = _gauge("waypost_runs_live", "Runs that have begun and haven't ended.", "deployment")
    queued = _gauge("waypost_mails_queued", "Mails that no run has yet: the mailbox's depth.", "deployment")
    held = _gauge("waypost_mails_on_hold", "Mails on hold.", "deployment")
    rejected = _counter(
        "waypost_mails_rejected", "Mails that were ever rejected after they were accepted.", "deployment"
    )
    outbox = _gauge("waypost_mails_outgoing", "Mails on their way out.", "deployment")
    deadlines = _gauge("waypost_deadlines_open", "Timers and time limits of runs that are open.", "deployment")
    following = _gauge(
        "waypost_next_deadline_timestamp_seconds", "When something is due next, in Unix time.", "deployment"
    )
    for name, one in state.deployments.items():
        census = one.census
        if census is None:
            continue
        for kind, count in census.waits().items():
            waiting.add_metric((name, kind), count)
        live.add_metric((name,), census.live)
        queued.add_metric((name,), census.queued)
        held.add_metric((name,), census.on_hold)
        rejected.add_metric((name,), census.rejected)
        outbox.add_metric((name,), census.outbox)
        deadlines.add_metric((name,), census.deadlines)
        if census.next is not None:
            following.add_metric((name,), census.next / 1000)
    yield from (waiting, live, queued, held, rejected, outbox, deadlines, following)


def _added_up(state: State) -> Iterator[Metric]:
    """What was told since the host's start."""
    watched = state.deployments.values()
    yield from _of_each(state.deployments)
    flushes = reduce(Histogram.__add__, (one.flushes for one in watched), NONE)
    yield _histogram(
        "waypost_flush_seconds", "How long a flush took: its writes, its signature, its sync.", {(): flushes}
    )
    legs: dict[tuple[str, ...], Histogram] = {(leg,): state.legs.get(leg, NONE) for leg in LEGS}
    yield _histogram("waypost_mail_leg_seconds", "How long a part of a mail's way took.", legs, "leg")
    yield _total("waypost_mails_served", "Mails that were followed to what they caused.", state.mails)
    yield _total("waypost_mail_events", "Events that runs wrote for these.", state.written)
    yield _total("waypost_mail_commits", "Commits that these were in.", state.commits)
    yield _total("waypost_mail_queue", "Mails that waited when these were claimed, added up.", state.ahead)
    yield _total("waypost_mail_runs", "Runs at work when these were claimed, added up.", state.beside)
    yield _total("waypost_clock_jumps", "Times that the wall clock was set, or the machine slept.", state.clock_jumps)


def _of_each(deployments: Mapping[Deployment, Watched]) -> Iterator[Metric]:
    p99 = _gauge("waypost_flush_p99_seconds", "Of its last thousand flushes.", "deployment")
    restarts = _counter("waypost_child_restarts", "Children that followed another one.", "deployment")
    exits = _counter("waypost_child_unasked_exits", "Children that ended unasked.", "deployment")
    wakes = _counter("waypost_wakes", "Children that came because something woke it.", "deployment")
    ended = _counter("waypost_runs_ended", "Runs that have ended.", "deployment", "outcome")
    for name, one in deployments.items():
        if (slow := one.flush_p99) is not None:
            p99.add_metric((name,), slow)
        restarts.add_metric((name,), one.restarts)
        exits.add_metric((name,), one.exits)
        wakes.add_metric((name,), one.wakes)
        for outcome in OUTCOMES:
            ended.add_metric((name, outcome), one.ended.get(outcome, 0))
    yield from (p99, restarts, exits, wakes, ended)


def _gauge(name: str, says: str, *labels: str, value: float | None = None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, says, value=value, labels=labels or None)


def _counter(name: str, says: str, *labels: str) -> CounterMetricFamily:
    """On the page its name ends with ``_total``."""
    return CounterMetricFamily(name, says, labels=labels)


def _total(name: str, says: str, value: int) -> CounterMetricFamily:
    return CounterMetricFamily(name, says, value=value)


def _histogram(
    name: str, says: str, several: Mapping[tuple[str, ...], Histogram], *labels: str
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, says, labels=labels)
    for values, histogram in several.items():
        family.add_metric(values, list(_buckets(histogram)), histogram.total)
    return family


def _buckets(histogram: Histogram) -> Iterator[tuple[str, float]]:
    """Each bound with how many took at most that long."""
    below = 0
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), histogram.counts, strict=True):
        below += count
        yield bound, below
