"""What preflight finds and `deploy` goes on with: only after a question, or with --accept and the id."""

from __future__ import annotations

import pytest

from tests.bed.arm.tokens import CHALLENGE
from tests.deploy.test_deploy import DEPLOY, answers
from tests.preflight.test_resources import limit
from tests.what_if.place import Place

WORDS = ("deploy", "minimal.yaml")
PARTITION, SERVER = "standardDDSv5Family", "standardDASv5Family"


def test_a_quota_that_only_a_partition_lacks_is_asked_about(deployable: Place) -> None:
    """A request for quota takes days; until then server, network and scheduler can be there."""
    limit(deployable.arm.state, PARTITION, 0)
    code, out, err = deployable("preflight", "minimal.yaml")
    assert (code, "warning E4305: quota standardDDSv5Family" in out) == (0, True), out
    assert "server and scheduler fit, partition htc not" in out
    code, _, err = deployable(*WORDS, "--yes")
    assert (code, "--accept E4305 continues without asking" in err, deployable.arm.changes) == (1, True, [])
    code, _, err = deployable(*WORDS)
    assert (code, "--accept E4305" in err, deployable.arm.changes) == (2, True, [])
    answers(deployable, "n\n")
    code, _, err = deployable(*WORDS)
    assert (code, "deploy anyway? [y/N]" in err, deployable.arm.changes) == (1, True, [])
    answers(deployable, "y\ny\n")
    assert deployable(*WORDS)[0] == 0


@pytest.mark.parametrize("family", [PARTITION, SERVER])
def test_a_finding_that_is_accepted_by_its_id(deployable: Place, family: str) -> None:
    limit(deployable.arm.state, family, 0)
    assert deployable(*WORDS, "--yes", "--accept", "W4306")[0] == 1, "another id is not this one"
    assert deployable.arm.changes == []
    code, _, err = deployable(*WORDS, "--yes", "--accept", "W4306", "--accept", "E4305")
    assert code == 0, err
    assert "E4305: quota" in err, "it is shown all the same"


def test_a_quota_that_the_server_lacks_is_an_error(deployable: Place) -> None:
    limit(deployable.arm.state, SERVER, 4)
    code, _, err = deployable(*WORDS, "--yes")
    assert (code, "error E4305: quota standardDASv5Family" in err, deployable.arm.changes) == (1, True, [])
    assert "--accept E4305 deploys despite it" in err


def test_what_is_accepted_does_not_cover_what_else_is_wrong(deployable: Place) -> None:
    limit(deployable.arm.state, PARTITION, 0)
    deployable.arm.state.subscription_state = "Disabled"
    code, _, err = deployable(*WORDS, "--yes", "--accept", "E4305")
    assert (code, "error E4002" in err, deployable.arm.changes) == (1, True, [])


@pytest.mark.parametrize("word", ["E4304", "quota", "E0101"])
def test_an_id_that_no_check_has(deployable: Place, word: str) -> None:
    code, _, err = deployable(*WORDS, "--yes", "--accept", word)
    assert (code, f"--accept {word}: preflight has no check of this id" in err) == (2, True)
    assert deployable.arm.requests == []


@pytest.mark.parametrize("words", [DEPLOY, ("delete", "minimal.yaml", "--yes", "minimal")])
def test_a_user_without_mfa_is_told_what_to_type(deployable: Place, words: tuple[str, ...]) -> None:
    if words[0] == "delete":
        assert deployable(*DEPLOY)[0] == 0
    deployable.arm.state.caller.methods = ("pwd",)
    before = dict(deployable.arm.state.resources)
    code, _, err = deployable(*words)
    assert code == 4
    assert "multi-factor authentication (MFA)" in err
    line = f"az login --tenant {deployable.arm.state.tenant} --claims-challenge {CHALLENGE}"
    assert f"  hint: {line} (Azure CLI 2.76 or later)" in err
    assert "not signed in" not in err
    assert deployable.arm.state.resources.keys() == before.keys()
