"""Where a host dies in a play that kills it at every boundary: at each of them once, whoever was there before it."""

from pathlib import Path

from waypost.testing.boundaries import Boundaries, met, named, subject_of

RUN = "run_1_0123456789abcdef"


def commit(subject: str) -> bytes:
    """A commit as it stands in a journal."""
    signature = b"gpgsig -----BEGIN SSH SIGNATURE-----\n U1NIU0lH\n -----END SSH SIGNATURE-----\n"
    return (
        b"tree 0\nauthor a <a> 1 +0000\ncommitter c <c> 1 +0000\n" + signature + b"\n" + subject.encode() + b"\n\nf 1\n"
    )


def test_each_is_new_once_whoever_has_met_it(tmp_path: Path) -> None:
    """So a host that dies at every new one gets on from life to life."""
    noted = tmp_path / "boundaries"
    first = Boundaries(noted, 1)
    assert first.reached(commit(f"append StepStarted pay r1#1 to {RUN}"))
    first.struck()
    second = Boundaries(noted, 1)
    assert not second.reached(commit(f"append StepStarted pay r1#1 to {RUN}")), "the same try, once more"
    assert second.reached(commit(f"append StepFailed pay r1#1 to {RUN}"))
    assert second.reached(commit(f"append StepStarted pay r1#1 to {RUN}")), "a retry"
    assert met(noted) == {
        "append StepStarted pay r1#1 to run_1, after nothing": True,
        "append StepFailed pay r1#1 to run_1, after append StepStarted pay r1#1 to run_1": False,
        "append StepStarted pay r1#1 to run_1, after append StepFailed pay r1#1 to run_1": False,
    }


def test_what_a_restart_writes_makes_nothing_new_after_it(tmp_path: Path) -> None:
    """It stands between any two others where somebody has died there."""
    life = Boundaries(tmp_path / "boundaries", 1)
    assert life.reached(commit(f"append StepStarted pay r1#1 to {RUN}"))
    assert life.reached(commit(f"append RunResumed to {RUN}"))
    assert not life.reached(commit(f"append RunResumed to {RUN}"))
    assert not life.reached(commit(f"append StepStarted pay r1#1 to {RUN}"))
    assert life.reached(commit("begin generation 2"))
    assert not life.reached(commit("begin generation 3"))


def test_of_several_in_one_flush_each_counts_and_nobody_there_is_made_up_for(tmp_path: Path) -> None:
    """Every second one, where there is somebody to kill; else the next one."""
    life = Boundaries(tmp_path / "boundaries", 2)
    assert not life.reached(commit("create the repository"))
    assert life.reached(commit("begin generation 1"))
    assert not life.reached(b"no commit at all")
    assert life.reached(commit(f"enqueue mail 1 for {RUN}")), "nobody was struck at the one before"
    life.struck()
    assert life.reached(commit(f"claim mail 1 for {RUN}, attempt 1") + commit(f"take up mail 1 as {RUN}"))
    life.struck()
    assert sum(met(tmp_path / "boundaries").values()) == 3


def test_a_boundary_is_called_alike_in_every_play() -> None:
    """What is counted up, and what is random, takes no part."""
    assert named(f"claim mail 1 for {RUN}, attempt 12") == "claim mail 1 for run_1, attempt"
    assert named("begin generation 3, put back 1 mail") == "begin generation, put back 1 mail"
    assert subject_of("seal run_1, after append RunCompleted to run_1") == "seal run_1"
