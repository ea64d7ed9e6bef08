"""The job `storage`: every file system against its tier, slow clients are named, and what failed is no pass."""

# ruff: noqa: E501
from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from generator.plan.job_figures import job_tables
from generator.recipes import recipe
from tests.bed import parts
from tests.bed.plans import plan_from
from tests.jobs.running import FAKES, JobFolder, job, job_folder, plan_with

PASS, FAIL, ERROR, WARN, NO_BASELINE = 0, 1, 2, 3, 4
NODES = ("hpc-1", "hpc-2", "hpc-3", "hpc-4")
IOR_TABLES = {
    # src/ior.c of 3.0.1, PrintLongSummaryHeader and PrintLongSummaryOneOperation; 3.1.0 is alike
    "3.0.1": "Max Write: 1.00 MiB/sec (1.05 MB/sec)\nOperation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev    Mean(s) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt blksiz xsize aggsize API RefNum\n"
    "write         746.55     746.55     746.55       0.00    0.00536 0 2 1 1 1 1 1 0 0 1 2097152 1048576 4194304 POSIX 0\n",
    # run with Debian's Open MPI: mpirun -np 2 ior -a POSIX -w -r -F -e -C -b 2m -t 1m -i 1
    "4.0.0": "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum\n"
    "write         746.55     746.55     746.55       0.00     746.55     746.55     746.55       0.00    0.00536         NA            NA     0      2   1    1   1     1        1         0    0      1  2097152  1048576       4.0 POSIX      0\n"
    "read        16529.28   16529.28   16529.28       0.00   16529.28   16529.28   16529.28       0.00    0.00024         NA            NA     0      2   1    1   1     1        1         0    0      1  2097152  1048576       4.0 POSIX      0\n",
}
MDTEST_TABLES = {
    # src/mdtest.c of 3.3.0, summarize_results
    "3.3.0": "4 tasks, 2000 files\nSUMMARY rate: (of 1 iterations)\n   File creation             :       1000.000       1000.000       1000.000          0.000\n"
    "   File stat                 :       4000.000       4000.000       4000.000          0.000\n   File read                 :          0.000          0.000          0.000          0.000\n"
    "   File removal              :       2000.000       2000.000       2000.000          0.000\n",
    # run with Debian's Open MPI: mdtest -F -C -T -r -n 500 -i 1 -u
    "4.0.0": "4 tasks, 2000 files\nSUMMARY rate: (of 1 iterations)\n   File creation                1000.000       1000.000       1000.000          0.000\n"
    "   File stat                    4000.000       4000.000       4000.000          0.000\n   File read                       0.000          0.000          0.000          0.000\n"
    "   File removal                 2000.000       2000.000       2000.000          0.000\n",
}


class Storage:
    """The job on four clients; each mount of its table is a folder here."""

    def __init__(self, tmp_path: Path, table: str, *, fake: bool = True) -> None:
        self.root, self.state = tmp_path, tmp_path / "fio-state"
        self.state.mkdir(parents=True)
        self.folder: JobFolder = job_folder(tmp_path, plan_with(job("storage", len(NODES))), NODES)
        (tmp_path / "proc").mkdir()
        mounted = ""
        for line in table.splitlines():
            name = line.split("\t")[0]
            (tmp_path / name / "root").mkdir(parents=True)
            mounted += f"server:/x {tmp_path / name} nfs4 rw 0 0\n"
        (tmp_path / "proc/mounts").write_text(mounted)
        rows = "".join(f"{tmp_path}/{line}\n" for line in table.splitlines())
        (self.folder.path / "mounts.tsv").write_text(f"#path\tprotocol\taccess\tmb_per_s\tformula\n{rows}")
        tools = tmp_path / "tools"
        tools.mkdir()
        for name in ("fio", "ior") if fake else ():
            shutil.copy(FAKES / "storage" / name, tools)
        self.folder.environment |= {
            "PATH": f"{tools}:{self.folder.environment['PATH']}", "FAKE_FIO": str(self.state), "CF_ROOT": str(tmp_path),
            "FAKE_AT_ONCE": "1", "USER": "root", "SET_CLIENT_JOBS": "2", "SET_CLIENT_MIB": "2",
            "SET_METADATA_FILES": "20", "SET_DISK_DIRECT": "0", "SLURM_JOB_NUM_NODES": str(len(NODES)),
        }  # fmt: skip

    def fio(self, node: str, way: str, rate: str, *, once: bool = False) -> None:
        (self.state / f"{node}.{way}").write_text(f"{rate}\n")
        if once:
            (self.state / f"{node}.{way}.once").touch()

    def run(self, number: int = 4711, /, **environment: str) -> tuple[int, dict[str, Any]]:
        done = self.folder.run(SLURM_JOB_ID=str(number), **environment)
        self.said = done.stdout + done.stderr
        path = self.folder.path / "results" / str(number) / "run.json"
        return done.returncode, json.loads(path.read_text(encoding="utf-8"))


def verdicts(record: dict[str, Any], root: Path) -> dict[tuple[str, ...], str]:
    """Verdicts by check and nodes, without clients that are well, and without rates of the machine that tests run on."""
    found = {(check["check"].replace(f"{root}/", ""), *check["nodes"]): check["verdict"] for check in record["checks"]}
    return {
        key: word
        for key, word in found.items()
        if not (key[0].startswith("client") and word == "pass") and "metadata" not in key[0]
    }


def test_the_plan_knows_what_each_tier_promises() -> None:
    """Managed Lustre and NetApp Files by their tiers, the scheduler's disks by their size, blob containers nothing."""
    plan = plan_from(
        """
storage:
  mounts:
    - {path: /data, type: amlfs, tier: 250, size_tib: 128}
    - {path: /anf, type: anf, size_tib: 20, service_level: Premium}
    - {path: /blob, type: blob, storage_account: account, container: data}
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 4}
jobs:
  validation: [storage]
"""
    )
    (table,) = plan.jobs[0].tables
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["/data"] == ("lustre", "rw", "32000", "250 MB/s per TiB x 128 TiB")
    assert rows["/anf"] == ("nfs", "rw", "1342.2", "the share of 20480 GiB of Premium")
    assert rows["/shared"][1] == "rw"
    assert rows["/sched"][1] == "system"
    assert rows["/shared"][3].startswith("a premium SSD of ")
    assert rows["/blob"] == ("blobfuse", "rw", "-", "-")
    found = recipe("smoke")
    assert found is not None
    assert list(job_tables(found, parts.A100, None, None)) == []  # type: ignore[arg-type]


def test_file_systems_are_judged_by_their_tier_or_by_earlier_runs(tmp_path: Path) -> None:
    """Three earlier runs make a median; a damaged one and another tool do not count. What is not mounted, or has no
    folder to write in, is not measured."""
    table = (
        "fast\tlustre\trw\t1000\t250 x 4\nslow\tnfs\trw\t9000\tbig\nplain\tnfs\trw\t-\t-\nro\tnfs\tro\t-\t-\n"
        "sched\tnfs\tsystem\t-\t-\ngone\tnfs\trw\t1000\ttier\nfull\tnfs\trw\t1000\ttier"
    )
    bed = Storage(tmp_path, table)
    mounts = tmp_path / "proc/mounts"
    mounts.write_text("".join(f"{line}\n" for line in mounts.read_text().splitlines() if "/gone " not in line))
    shutil.rmtree(tmp_path / "full")
    for number, rate in enumerate((1000.0, 1100.0, 1200.0)):
        folder = bed.folder.path / f"results/{number}"
        folder.mkdir(parents=True)
        lines = f"write {tmp_path}/plain\t4\tfio\t{rate}\nread {tmp_path}/plain\t4\tdd\t{rate}\nhalf\t4"
        (folder / "totals.tsv").write_text(lines)
    status, record = bed.run()
    assert status == FAIL, (bed.said, record["checks"])
    assert verdicts(record, tmp_path) == {
        ("mounted fast",): "pass", ("write fast",): "pass", ("read fast",): "pass",
        ("mounted slow",): "pass", ("write slow",): "warn", ("read slow",): "warn",
        ("mounted plain",): "pass", ("write plain",): "pass", ("read plain",): "no_baseline",
        ("mounted ro",): "pass", ("mounted sched",): "pass",
        ("mounted gone", *NODES): "fail", ("mounted full",): "pass", ("write full",): "error",
    }  # fmt: skip
    (written,) = (check for check in record["checks"] if check["check"] == f"write {tmp_path}/slow")
    assert (written["value"], written["expected"]) == (1106.0, 6300.0)
    assert written["source"] == "tier: big; 70 % is our own choice"
    assert any("sudo install -d -o root" in check["detail"] for check in record["checks"])
    assert f"{tmp_path}/sched, to which only root writes" in record["summary"]
    curve = next(curve for curve in record["series"] if curve["name"] == f"read {tmp_path}/fast")
    assert curve["points"] == [[1, 276.5], [4, 1106.0]]
    # Nothing of the run is left on the file systems.
    assert [path.name for path in (tmp_path / "fast").rglob("*")] == ["root"]
    status, record = bed.run(4712, SET_MOUNTS="/no/such")
    assert (status, record["verdict"]) == (ERROR, "error")


def test_a_slow_client_is_named_and_a_broken_one_proves_nothing(tmp_path: Path) -> None:
    bed = Storage(tmp_path, "data\tlustre\trw\t1000\ttier")
    bed.fio("hpc-3", "write", "150000")
    bed.fio("hpc-2", "read", "crash")
    bed.fio("hpc-4", "read", "half")
    status, record = bed.run()
    assert status == FAIL
    found = verdicts(record, tmp_path)
    assert found["client write data", "hpc-3"] == "fail"
    assert [key for key in found if key[0] == "client write data"] == [("client write data", "hpc-3")]
    assert "fail: client write " in bed.said
    assert found["read data", "hpc-2", "hpc-4"] == "error"
    # What was slow once only is not the node.
    for node in NODES:
        bed.fio(node, "write", "270000")
        bed.fio(node, "read", "270000")
    bed.fio("hpc-3", "write", "150000", once=True)
    status, record = bed.run(4712)
    assert "a node is much slower than the others; measured once more" in bed.said
    assert {word for key, word in verdicts(record, tmp_path).items() if key[0] != "mounted data"} == {"pass"}


def test_ior_counts_only_if_it_finished_with_all_processes(tmp_path: Path) -> None:
    """A launch that failed once is made again; mdtest beside IOR measures metadata."""
    bed = Storage(tmp_path, "data\tlustre\trw\t1000\ttier")
    ior = {"SET_IOR_BINARY": str(tmp_path / "tools/ior")}
    (bed.state / "ior.crash_once").touch()
    status, record = bed.run(**ior)
    found = verdicts(record, tmp_path)
    assert (found["write data",], found["read data",]) == ("pass", "pass"), (bed.said, record["checks"])
    assert "ior failed in launch 1: srun: error: task 0: Segmentation fault" in bed.said
    mdtest = Path(shutil.copy(FAKES / "storage/mdtest", tmp_path / "tools"))
    (bed.state / "ior.tasks").write_text("1")
    status, record = bed.run(4712, **ior)
    assert verdicts(record, tmp_path)["write data",] == "error"
    assert status in (ERROR, FAIL)
    (metadata,) = (check for check in record["checks"] if check["check"].startswith("metadata"))
    assert (metadata["value"], metadata["verdict"]) == (571.4, "no_baseline")
    assert "mdtest: creation 1000/s, stat 4000/s, removal 2000/s" in metadata["detail"]
    mdtest.unlink()
    (bed.state / "ior.crash").touch()
    status, record = bed.run(4713, **ior)
    assert verdicts(record, tmp_path)["read data",] == "error"
    status, record = bed.run(4714, SET_IOR_BINARY="/no/ior")
    assert (status, record["verdict"]) == (ERROR, "error")


def test_what_each_version_of_ior_and_mdtest_prints(tmp_path: Path) -> None:
    """One Bash reads all; a table that is cut off, of other processes or without its end has no figure."""
    ior_end, mdtest_end = "Finished            : Mon Nov 23 10:42:49 2026\n", "-- finished at 11/23/2026 10:42:31 --\n"
    cases: list[tuple[str, str, str]] = []
    for table in IOR_TABLES.values():
        cases += [("rate_of_ior @ write 2", table + ior_end, "782.8"), ("rate_of_ior @ write 4", table + ior_end, ""),
                  ("rate_of_ior @ write 2", table, ""), ("rate_of_ior @ write 2", table.replace(" POSIX", "") + ior_end, ""),
                  ("rate_of_ior @ write 2", table * 2 + ior_end, "")]  # fmt: skip
    cases += [("rate_of_ior @ read 2", IOR_TABLES["4.0.0"] + ior_end, "17332.2"),
              ("rate_of_ior @ read 2", IOR_TABLES["3.0.1"] + ior_end, "")]  # fmt: skip
    for table in MDTEST_TABLES.values():
        said = "571.4\tcreation 1000/s, stat 4000/s, removal 2000/s"
        cases += [("rate_of_mdtest @ 4", table + mdtest_end, said), ("rate_of_mdtest @ 8", table + mdtest_end, ""),
                  ("rate_of_mdtest @ 4", table, ""), ("rate_of_mdtest @ 4", table.replace("2000.000", "nan") + mdtest_end, "")]  # fmt: skip
    script = ". recipes/lib/untagged.sh; . recipes/lib/fio.sh\n"
    for number, (command, text, _) in enumerate(cases):
        (tmp_path / str(number)).write_text(text)
        script += f"printf '%s|' \"$({command.replace('@', str(tmp_path / str(number)))})\"\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("|")[:-1] == [wanted for _, _, wanted in cases]


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_for_real_with_fio(tmp_path: Path) -> None:
    """Four clients write and read a folder here, each the files of its neighbour."""
    bed = Storage(tmp_path, "data\tnfs\trw\t0.5\ttier", fake=False)
    status, record = bed.run()
    assert status in (PASS, WARN, FAIL), (bed.said, record["checks"])
    found = verdicts(record, tmp_path)
    assert (found["write data",], found["read data",]) == ("pass", "pass"), record["checks"]
    assert [path.name for path in (tmp_path / "data").rglob("*")] == ["root"]
