"""The proxy reaches the first boot and every node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bed.plans import plan_from
from tests.bed.yaml_data import yaml_data
from tests.bicep.variants import behind_a_firewall, main_bicep
from tests.cluster_template.rendered import read

URL = "http://10.0.1.5:3128"


def cloud_init() -> str:
    rendered = read(behind_a_firewall())
    assert rendered.findings == ()
    text = rendered.attribute("scheduler", "CloudInit")
    assert isinstance(text, str)
    return text


def test_nodes_get_it_for_shells_and_installers() -> None:
    files = {entry["path"]: entry for entry in yaml_data(cloud_init())["write_files"]}
    assert files["/etc/apt/apt.conf.d/95cycleforge-proxy"]["content"].count(f'Proxy "{URL}";') == 2
    assert files["/etc/dnf/dnf.conf"] == {"path": "/etc/dnf/dnf.conf", "append": True, "content": f"proxy={URL}\n"}
    assert f"proxy = {URL}" in files["/etc/pip.conf"]["content"]
    for array in ("htc", "login"):
        assert read(behind_a_firewall()).attribute(array, "CloudInit") == cloud_init()


def test_shells_keep_metadata_locker_and_network_out_of_it() -> None:
    profile = next(entry for entry in yaml_data(cloud_init())["write_files"] if "profile.d" in entry["path"])
    script = profile["content"] + 'printf "%s\\n" "$https_proxy" "$http_proxy" "$HTTPS_PROXY" "$no_proxy" "$NO_PROXY"'
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[:3] == [URL] * 3
    assert said[3] == said[4]
    assert {"169.254.169.254", "168.63.129.16", ".blob.core.windows.net", "10.50.0.0/20", ".example.com"} <= set(
        said[3].split(",")
    )


def test_it_is_what_cloud_init_accepts(tmp_path: Path) -> None:
    if shutil.which("cloud-init") is None:
        pytest.skip("cloud-init is not on PATH: the schema was not asked")
    path = tmp_path / "user-data.yaml"
    path.write_text(cloud_init())
    asked = subprocess.run(
        ["cloud-init", "schema", "--config-file", str(path)], capture_output=True, text=True, check=False
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr


def test_the_first_boot_gets_it_as_facts() -> None:
    text = main_bicep(behind_a_firewall())
    assert f"proxyUrl: '{URL}'" in text
    assert (
        "noProxy: 'localhost,127.0.0.1,168.63.129.16,169.254.169.254,10.50.0.0/20,.example.com,"
        ".blob.${environment().suffixes.storage}'"
    ) in text


def test_without_a_proxy_there_is_none() -> None:
    plan = plan_from()
    assert "proxyUrl" not in main_bicep(plan)
    assert read(plan).attribute("scheduler", "CloudInit") is None
    assert json.dumps(plan.resolved).count("proxy") == 1
