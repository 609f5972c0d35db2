"""The page of metrics: what Prometheus' own parser reads from it, and what docs/metrics.md says of it."""

import http.client
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from actors.describing import Budget, Description
from actors.messages import DeploymentSpec
from substrate.messages import Census
from waypost.host.api.metrics_server import Place, PortTaken, listen, metrics_server, place
from waypost.host.errors import NotNow, Usage
from waypost.host.messages import Deployed
from waypost.host.watching.histogram import BOUNDS, Histogram, Recent
from waypost.host.watching.metrics import Scrape
from waypost.host.watching.observer_logic import LEGS, State, Watched
from waypost.model.ids import Deployment, Generation
from waypost.model.limits import DEFAULT
from waypost.model.times import Now

NOW = Now(wall=1_795_939_200_000, mono=100.0)
NAME = Deployment("expenses")
CENSUS = Census(
    waiting=((("approval",), 2), (("approval", "timer"), 1)),
    queued=4,
    on_hold=1,
    rejected=2,
    outbox=5,
    deadlines=1,
    next=NOW.wall + 60_000,
)
WATCHED = Watched(
    census=CENSUS,
    flushes=Histogram().add([0.001, 0.003]),
    recent=Recent().add([0.001] * 9),
    ended={"failed": 2},
    restarts=3,
    wakes=4,
    exits=1,
)
STATE = State(
    deployments={NAME: WATCHED},
    legs={leg: Histogram().add([0.01]) for leg in LEGS},
    mails=7,
    written=28,
    commits=21,
    ahead=14,
    beside=9,
    clock_jumps=1,
)


def deployed(state: str, code: str = "") -> Deployed:
    """A deployment as the root knows it."""
    spec = DeploymentSpec(
        name=NAME, address="secret@example.com", definition="d", code="c", file="f", steps=(), mail_to=(),
        runs="thread", env=(), python="3", waypost="0",
    )  # fmt: skip
    description = Description(
        name=NAME, address="secret@example.com", state=state, reason="subject", generation=Generation(8), pid=1,
        until=None, isolation="none", code=code, budget=Budget((0.0,), 99.0),
    )  # fmt: skip
    return Deployed(spec, description, None)


def scraped(*deployments: Deployed, observed: State | None = STATE) -> dict[str, Metric]:
    """The page as Prometheus reads it."""
    scrape = Scrape(deployed=deployments, observed=observed, dropped=6, limits=DEFAULT, now=NOW)
    return {family.name: family for family in text_string_to_metric_families(scrape.page().decode())}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    """One sample."""
    (found,) = (
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    )
    return found


def test_each_metric_of_the_page_is_in_the_document_and_each_of_the_document_on_the_page() -> None:
    """With its kind and its labels: who builds an alert on it looks there."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*)\|", page, re.MULTILINE)
    told = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    found = {}
    for name, family in scraped(deployed("running")).items():
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[f"{name}_total" if family.type == "counter" else name] = (family.type, labels)
    assert found == told
    assert len(rows) == len(told)
    used = set(re.findall(r"(?:waypost|process)_\w+", page.split("## Alerts")[1]))
    assert {name.removesuffix("_bucket") for name in used} <= set(told)


def test_the_samples_are_what_is_known() -> None:
    """Seconds are seconds, times are Unix times, counts are counts."""
    families = scraped(deployed("running"))
    of = {"deployment": "expenses"}
    assert value(families, "waypost_deployments", state="running") == 1
    assert value(families, "waypost_deployments", state="down") == 0
    assert value(families, "waypost_crash_budget", **of) == 2
    assert value(families, "waypost_child_generation", **of) == 8
    assert value(families, "waypost_child_restarts_total", **of) == 3
    assert value(families, "waypost_child_unasked_exits_total", **of) == 1
    assert value(families, "waypost_wakes_total", **of) == 4
    assert value(families, "waypost_runs_live", **of) == 3
    assert value(families, "waypost_runs_waiting", **of, kind="approval") == 3
    assert value(families, "waypost_runs_ended_total", **of, outcome="failed") == 2
    assert value(families, "waypost_runs_ended_total", **of, outcome="completed") == 0
    assert value(families, "waypost_mails_queued", **of) == 4
    assert value(families, "waypost_mails_rejected_total", **of) == 2
    assert value(families, "waypost_next_deadline_timestamp_seconds", **of) == NOW.wall / 1000 + 60
    assert value(families, "waypost_mail_events_total") == 28
    assert (value(families, "waypost_mail_queue_total"), value(families, "waypost_mail_runs_total")) == (14, 9)
    assert value(families, "waypost_marks_dropped_total") == 6
    assert value(families, "waypost_clock_jumps_total") == 1
    assert value(families, "process_open_fds") > 2


def test_a_histogram_counts_up_to_all_of_them() -> None:
    """Each bucket has those below it, too, and the last one all."""
    families = scraped(deployed("running"))
    buckets = [
        sample.value
        for sample in families["waypost_flush_seconds"].samples
        if sample.name == "waypost_flush_seconds_bucket"
    ]
    assert buckets == sorted(buckets)
    assert len(buckets) == len(BOUNDS) + 1
    assert buckets[-1] == value(families, "waypost_flush_seconds_count") == 2
    assert value(families, "waypost_flush_seconds_sum") == pytest.approx(0.004)
    assert value(families, "waypost_flush_seconds_bucket", le="0.001") == 1


def test_what_is_not_known_has_no_sample_and_nothing_of_a_mail_is_there() -> None:
    """An observer that has ended, a deployment that nobody has counted; and no address in any case."""
    families = scraped(deployed("down", "crash-looping"), observed=None)
    assert value(families, "waypost_observer_up") == 0
    assert value(families, "waypost_crash_budget", deployment="expenses") == 0
    assert "waypost_runs_live" not in families
    uncounted = scraped(deployed("dormant"), observed=State(deployments={NAME: Watched()}))
    assert not uncounted["waypost_runs_live"].samples
    assert not uncounted["waypost_flush_p99_seconds"].samples
    page = Scrape(deployed=(deployed("running"),), observed=STATE, dropped=0, limits=DEFAULT, now=NOW).page()
    assert b"secret" not in page
    assert b"subject" not in page


# --- the port ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said", "local"),
    [
        ("9464", "127.0.0.1:9464", True),
        ("127.0.0.2:0", "127.0.0.2:0", True),
        ("[::1]:80", "[::1]:80", True),
        ("10.0.0.5:9464", "10.0.0.5:9464", False),
        ("0.0.0.0:1", "0.0.0.0:1", False),
    ],
)
def test_a_place_is_a_port_of_this_machine_unless_another_address_is_said(text: str, said: str, *, local: bool) -> None:
    """Nobody outside reads it because somebody forgot a word."""
    found = place(text)
    assert (str(found), found.local) == (said, local)


@pytest.mark.parametrize("text", ["", "x", ":80", "65536", "-1", "127.0.0.1:", "example.com:80", "1:2:3:80000", "²"])
def test_what_is_no_place_is_refused(text: str) -> None:
    """With an example of one that is."""
    with pytest.raises(Usage, match="neither a port nor"):
        place(text)


def test_a_port_that_somebody_else_has_is_told() -> None:
    """And what to do about it."""
    with listen(Place("127.0.0.1", 0)) as listener, pytest.raises(PortTaken, match=r"127\.0\.0\.1"):
        listen(Place("127.0.0.1", listener.getsockname()[1]))


@pytest.fixture(name="port")
def _port() -> Iterator[int]:
    async def page(request: Request) -> Response:
        if "late" in request.query_params:
            raise NotNow("the host is being stopped")
        return PlainTextResponse("a 1\n")

    listener = listen(Place("127.0.0.1", 0))
    server = metrics_server(listener, page, local=True).start()
    yield listener.getsockname()[1]
    server.stop()


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """One request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_the_port_has_one_page_for_this_machine_to_read(port: int) -> None:
    """A page in a browser that has its name point here reads nothing, and nobody writes anything."""
    assert ask(port, "/metrics") == (200, "a 1\n")
    assert ask(port, "/metrics", Host=f"localhost:{port}")[0] == 200
    assert ask(port, "/metrics", Host="evil.example")[0] == 403
    assert ask(port, "/v1/status")[0] == 404
    assert ask(port, "/metrics", "POST")[0] == 405
    assert ask(port, "/metrics?late")[0] == 503
