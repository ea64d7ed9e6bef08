"""`cycleforge status` beside the answers that must wait for one another, with Azure and the site 300 ms away.

Azure is asked everything at the same time, and the site once it is known where it is: two answers in a row. The
stand-ins answer each request after 300 ms, over TLS; the cluster has 1,000 nodes. Start-up and the token are measured
apart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.preflight import ANSWER_S, ROUNDS, Answered, chain_of
from benchmarks.table import Limit, Ratio
from benchmarks.upload import MEMORY_LIMIT_MIB, PEAK
from generator.files import assets
from tests.bed.arm import Arm, running_arm
from tests.bed.cyclecloud import PASSWORD, SiteStandIn, running_site
from tests.bed.plans import KEY
from tests.cyclecloud.deployed import Names, put_deployed

NAME, PARTITION = "gpt3-h100", "gpu"
NETWORK, DIRECT = "network:\n", "network:\n  access: public\n  allowed_sources: [203.0.113.0/24]\n"
"""The site is asked directly: behind a Bastion the forward to it is start-up, too."""
AT = Names(f"{NAME}-eastus", f"{NAME}-rg", f"{NAME}-server")
CHAIN, LIMIT, NODES = 2, 1.5, 1000
_TIMED = """\
import json, sys, time
from pathlib import Path
from generator.azure.reader import Reader
from generator.operate.asking import session_of
from generator.operate.built import Built
from generator.operate.reading import read
from generator.operate.site import login_of
from generator.operate.status import Looker
from generator.cli.status_text import screen
definition = read([sys.argv[1]])[0]
plan = definition.plan
found = Built(definition, plan, Path(sys.argv[2]) / plan.name)
reader = Reader(session_of(plan))
reader.session.get_token()
looker = Looker(found, reader, login_of(plan))
begun = time.monotonic()
look = looker.look()
text = screen(look)
print(json.dumps([time.monotonic() - begun, len(text), look.is_partial or look.has_failed]))
"""


def status_figures() -> Iterator[Ratio | Limit]:
    """Time beside the longest chain, its length, the lines of the screen, and the memory."""
    with (
        tempfile.TemporaryDirectory(prefix="status.") as name,
        tempfile.TemporaryDirectory(prefix="status-site.") as other,
        running_arm(Path(name)) as arm,
        running_site(Path(other)) as site,
    ):
        environment = _place(arm, site, Path(name))
        times, chains, lines = zip(*(_timed(arm, site, environment, name) for _ in range(ROUNDS)), strict=True)
        chain = min(chains)
        label = f"status of {NAME} with {NODES} nodes"
        yield Limit(f"{label}: answers waited for one after the other", float(chain), "answers", float(CHAIN))
        yield Ratio(label, min(times), f"{chain} answers of {ANSWER_S * 1000:.0f} ms", chain * ANSWER_S, LIMIT)
        yield Limit(f"{label}: the screen", float(max(lines)), "lines", 24.0)
        words = [
            sys.executable,
            "-c",
            PEAK,
            sys.executable,
            "-m",
            "generator",
            "status",
            f"{name}/{NAME}.yaml",
            "--out",
            f"{name}/output",
        ]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=120)
        yield Limit(f"memory of {label}", int(done.stdout) / 1024, "MiB", MEMORY_LIMIT_MIB)


def _place(arm: Arm, site: SiteStandIn, folder: Path) -> dict[str, str]:
    """A built folder that is deployed, and the environment of someone who is signed in to both."""
    given = {"CYCLECLOUD_SSH_PUBLIC_KEY": KEY, "CYCLECLOUD_ADMIN_PASSWORD": PASSWORD}
    environment = dict(os.environ) | arm.environment | given
    text = (assets.folder("cluster_defs") / f"{NAME}.yaml").read_text(encoding="utf-8")
    definition = folder / f"{NAME}.yaml"
    definition.write_text(text.replace(NETWORK, DIRECT), encoding="utf-8")
    build = [sys.executable, "-m", "generator", "build", str(definition), "--out", str(folder / "output")]
    subprocess.run(build, env=environment, capture_output=True, check=True, timeout=120)
    put_deployed(arm, site, folder / "output" / NAME, AT)
    cluster = site.state.cluster(NAME, "Standard_ND96isr_H100_v5", **{PARTITION: NODES}).starts()
    cluster.add(PARTITION, NODES)
    cluster.settle([])
    arm.answer_s = site.answer_s = ANSWER_S
    return environment


def _timed(arm: Arm, site: SiteStandIn, environment: dict[str, str], folder: str) -> tuple[float, int, int]:
    """Seconds of one look, its longest chain of answers that waited for one another, and the lines of the screen."""
    arm.requests = site.requests = answered = Answered()
    words = [sys.executable, "-c", _TIMED, f"{folder}/{NAME}.yaml", f"{folder}/output"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=120)
    seconds, lines, is_wrong = json.loads(done.stdout)
    if is_wrong or arm.refused or site.refused:
        raise RuntimeError(f"a healthy deployment is not known or has failed: {arm.refused} {site.refused}")
    return seconds, chain_of(answered.moments), lines
