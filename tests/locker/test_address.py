"""Which container is meant: every form, and what is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generator.errors import CannotRead
from generator.locker.address import VARIABLE, Address, connection_settings, from_environment, parse
from generator.operate.locker import Locker, destinations

PUBLIC = "https://forgelocker.blob.core.windows.net"


@pytest.mark.parametrize(
    ("word", "url", "account", "container", "text"),
    [
        ("az://forgelocker/projects", PUBLIC, "forgelocker", "projects", "az://forgelocker/projects"),
        ("az://forgelocker", PUBLIC, "forgelocker", "cyclecloud", "az://forgelocker/cyclecloud"),
        ("AZ://forgelocker/", PUBLIC, "forgelocker", "cyclecloud", "az://forgelocker/cyclecloud"),
        ("forgelocker/projects", PUBLIC, "forgelocker", "projects", "az://forgelocker/projects"),
        ("forgelocker", PUBLIC, "forgelocker", "cyclecloud", "az://forgelocker/cyclecloud"),
        (" az://forgelocker/projects\n", PUBLIC, "forgelocker", "projects", "az://forgelocker/projects"),
        (f"{PUBLIC}/projects", PUBLIC, "forgelocker", "projects", "az://forgelocker/projects"),
        (f"{PUBLIC}//projects//", PUBLIC, "forgelocker", "projects", "az://forgelocker/projects"),
        (f"{PUBLIC}:443", PUBLIC, "forgelocker", "cyclecloud", "az://forgelocker/cyclecloud"),
        ("https://ForgeLocker.Blob.core.windows.net/a-b", PUBLIC, "forgelocker", "a-b", "az://forgelocker/a-b"),
        *(
            (f"{url}/c-1", url, "acc", "c-1", f"{url}/c-1")
            for url in (
                "https://acc.blob.core.chinacloudapi.cn", "https://acc.blob.core.usgovcloudapi.net",
                "https://acc.z13.blob.storage.azure.net", "https://acc.privatelink.blob.core.windows.net",
                "https://127.0.0.1:10443/acc", "https://10.1.2.3/acc", "http://127.0.0.1:10000/acc",
                "http://localhost:10000/acc", "http://[::1]:10000/acc", "https://[fd00::5]/acc",
            )
        ),
        ("http://127.0.0.1:1/acc", "http://127.0.0.1:1/acc", "acc", "cyclecloud", "http://127.0.0.1:1/acc/cyclecloud"),
    ],
)  # fmt: skip
def test_forms(word: str, url: str, account: str, container: str, text: str) -> None:
    found = parse(word)
    assert found == Address(url, account, container)
    assert str(found) == text
    assert parse(str(found)) == found


SECRET = "an address must not carry a secret"


@pytest.mark.parametrize(
    ("word", "message", "hint"),
    [
        ("", "'' is not a valid storage account name", "3 to 24 lower-case letters and digits"),
        ("az://", "'' is not a valid", "3 to 24"),
        ("az:///projects", "'' is not a valid", "3 to 24"),
        ("az://no/projects", "'no' is not a valid storage account name", "3 to 24"),
        ("az://Forge/projects", "'Forge' is not a valid storage account name", "lower-case letters"),
        ("az://forge_locker/projects", "'forge_locker' is not a valid", "3 to 24"),
        ("az://forge-secondary/projects", "'forge-secondary' is not a valid", "3 to 24"),
        (f"az://{'a' * 25}", f"'{'a' * 25}' is not a valid", "3 to 24"),
        ("az://forge.blob.core.windows.net/projects", "'forge.blob.core.windows.net' is not a valid", "3 to 24"),
        *(
            (f"az://forge/{name}", f"'{name}' is not a valid container name", "3 to 63")
            for name in ("ab", "Projects", "a--b", "-ab", "ab-", "$root", "a b", "ä-ä", "a" * 64, "-".join("a" * 33))
        ),
        ("az://forge/projects/slurm/1.0.0", "'az://forge/projects/slurm/1.0.0' points below a container", "end it"),
        (f"{PUBLIC}/projects/x", "points below a container", "end it with the container"),
        ("http://127.0.0.1:1/acc/projects/x", "points below a container", "end it with the container"),
        ("http://127.0.0.1:1", "'' is not a valid storage account name", "3 to 24"),
        ("http://forgelocker.blob.core.windows.net/c-1", "is not encrypted", "write https://"),
        ("http://10.1.2.3/acc/c-1", "is not encrypted", "write https://"),
        ("http://localhost.example.com/acc/c-1", "is not encrypted", "write https://"),
        ("https://acc.dfs.core.windows.net/c-1", "is the file system endpoint of an account", ".blob. instead of"),
        ("ftp://forge/projects", "'ftp://forge/projects' is not a valid locker address", "az://ACCOUNT/CONTAINER"),
        ("https:///projects", "is not a valid locker address", "az://ACCOUNT/CONTAINER"),
        ("https://[::1/projects", "is not a valid locker address", "az://ACCOUNT/CONTAINER"),
        ("https://acc.blob.core.windows.net:x/c-1", "is not a valid locker address", "az://ACCOUNT/CONTAINER"),
        ("https://acc.blob.core.windows.net:99999/c-1", "is not a valid locker address", "az://ACCOUNT/CONTAINER"),
        ("https://acc.blob.core.windows.net/c-1#part", "is not a valid locker address", "az://ACCOUNT/CONTAINER"),
        (f"{PUBLIC}/projects?sv=2024&sig=hush", SECRET, "AZURE_STORAGE_SAS_TOKEN"),
        (f"{PUBLIC}/projects#sig=hush", SECRET, "AZURE_STORAGE_SAS_TOKEN"),
        ("https://[::1/projects?sig=hush", SECRET, "AZURE_STORAGE_SAS_TOKEN"),
        ("az://forge/projects?sig=hush", SECRET, "AZURE_STORAGE_SAS_TOKEN"),
        ("https://forge:hush@forge.blob.core.windows.net/projects", SECRET, "AZURE_STORAGE_SAS_TOKEN"),
        ("az://hush@forge/projects", SECRET, "AZURE_STORAGE_SAS_TOKEN"),
        ("AccountName=forge;AccountKey=hush", SECRET, "AZURE_STORAGE_CONNECTION_STRING"),
        ("AccountKey=hush", SECRET, "AZURE_STORAGE_CONNECTION_STRING"),
        ("BlobEndpoint=https://forge.blob.core.windows.net;AccountKey=hush", SECRET, "AZURE_STORAGE_CONNECTION_STRING"),
    ],
)  # fmt: skip
def test_what_is_no_address(word: str, message: str, hint: str) -> None:
    with pytest.raises(CannotRead) as refused:
        parse(word)
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")
    assert "hush" not in f"{refused.value.message}{refused.value.hint}"


@given(st.one_of(
    st.text(max_size=60),
    st.tuples(
        st.sampled_from(["az://", "https://", "http://", "//", "", "az:", "https:"]),
        st.text("abc019-._:@?#[]/%\\ $\n", max_size=40),
    ).map("".join),
))  # fmt: skip
@example("https://[")
@example("https://a.b:٣/")
@example("http://\u2100/x")
@example("az://\ud800/x")
def test_anything_else_is_refused_by_name(word: str) -> None:
    try:
        found = parse(word)
    except CannotRead:
        return
    assert parse(str(found)) == found
    assert found.account_url.startswith(("https://", "http://127.", "http://localhost", "http://[::1]"))
    assert 3 <= len(found.container) <= 63


@given(st.text("ab-1", min_size=1, max_size=70))
def test_names_of_containers(name: str) -> None:
    """Source: learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata"""
    is_good = 3 <= len(name) <= 63 and not name.startswith("-") and not name.endswith("-") and "--" not in name
    try:
        assert parse(f"az://forge/{name}").container == name
    except CannotRead:
        assert not is_good
    else:
        assert is_good


# ---------------------------------------------------------------- the environment

KEYED = "DefaultEndpointsProtocol=https;AccountName=forge;AccountKey=a2V5;"
OWN, ACCOUNT, STRING = VARIABLE, "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_CONNECTION_STRING"


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, None),
        ({OWN: "", STRING: "", ACCOUNT: ""}, None),
        ({OWN: "az://mine/own", STRING: KEYED, ACCOUNT: "other"}, "az://mine/own"),
        ({STRING: KEYED + "EndpointSuffix=core.windows.net", ACCOUNT: "other"}, "az://forge/cyclecloud"),
        ({STRING: KEYED}, "az://forge/cyclecloud"),
        ({STRING: KEYED + "EndpointSuffix=core.usgovcloudapi.net"},
         "https://forge.blob.core.usgovcloudapi.net/cyclecloud"),
        ({STRING: KEYED + "BlobEndpoint=http://127.0.0.1:10000/forge"}, "http://127.0.0.1:10000/forge/cyclecloud"),
        ({STRING: "BlobEndpoint=https://forge.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=x"},
         "az://forge/cyclecloud"),
        ({STRING: "QueueEndpoint=https://forge.queue.core.windows.net/", ACCOUNT: "other"}, "az://other/cyclecloud"),
        ({STRING: "garbage", ACCOUNT: "other"}, "az://other/cyclecloud"),
        ({ACCOUNT: "other"}, "az://other/cyclecloud"),
    ],
)  # fmt: skip
def test_what_the_environment_names(variables: dict[str, str], wanted: str | None) -> None:
    found = from_environment(variables)
    assert (str(found) if found else None) == wanted


def test_bad_values_of_the_environment() -> None:
    for variables in ({OWN: "az://x"}, {ACCOUNT: "No"}, {STRING: "AccountName=No;AccountKey=hush"}):
        with pytest.raises(CannotRead) as refused:
            from_environment(variables)
        assert "hush" not in refused.value.message


def test_settings_of_a_connection_string() -> None:
    assert connection_settings(" AccountKey = YQ== ;;x; accountname=a") == {"accountkey": "YQ==", "accountname": "a"}


# ---------------------------------------------------------------- the command line, the definition

INI = "[project]\nname = site\nversion = 1.0.0\ntype = application\n"


def of_site(folder: Path, locker: str | None) -> str:
    (folder / "site/specs/default/cluster-init/files").mkdir(parents=True, exist_ok=True)
    (folder / "site/project.ini").write_text(INI)
    (found,) = destinations([str(folder / "site")], Locker(locker))
    return str(found.address)


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (OWN, ACCOUNT, STRING):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_variables")
def test_the_flag_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotRead, match="no locker was given") as refused:
        of_site(tmp_path, None)
    assert "--locker az://" in (refused.value.hint or "")
    with pytest.raises(CannotRead, match="no locker was given"):
        Locker().needed()
    monkeypatch.setenv(ACCOUNT, "other")
    assert of_site(tmp_path, None) == "az://other/cyclecloud"
    monkeypatch.setenv(OWN, "az://mine/own")
    assert of_site(tmp_path, None) == "az://mine/own"
    assert of_site(tmp_path, "az://forge/flag") == "az://forge/flag"
    assert str(Locker("az://forge/flag").needed()) == "az://forge/flag"


@pytest.mark.usefixtures("no_variables")
def test_a_definition_names_its_locker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cluster_defs"
    folder.mkdir()
    shipped = (Path(__file__).resolve().parents[2] / "cluster_defs/minimal.yaml").read_text()
    (folder / "named.yaml").write_text(f"{shipped}\nstorage:\n  locker:\n    account_name: fromdefinition\n")
    (folder / "other.yaml").write_text(
        f"{shipped}\nstorage:\n  locker:\n    account_name: fromdefinition\n    container: other\n"
    )
    (folder / "unnamed.yaml").write_text(shipped)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ACCOUNT, "fromenvironment")

    def lockers(*words: str, flag: str | None = None) -> list[str]:
        found = destinations(words, Locker(flag))
        assert all(target.packages for target in found)
        return [str(target.address) for target in found]

    assert lockers("named", "unnamed", "other", "named") == [
        "az://fromdefinition/cyclecloud", "az://fromenvironment/cyclecloud", "az://fromdefinition/other",
    ]  # fmt: skip
    assert lockers("named", "other", flag="az://forge/flag") == ["az://forge/flag"]
    monkeypatch.setenv(OWN, "az://mine/own")
    assert lockers("named", "unnamed") == ["az://mine/own"]
