"""What the shell of a user hands on to a job changes no verdict, whatever it is."""

from __future__ import annotations

import gzip
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from generator import catalog
from generator.files import assets
from generator.recipes import recipe_names
from tests.bed import parts
from tests.jobs import (
    running,
    test_fabric_bisect,
    test_fabric_links,
    test_fabric_pairs,
    test_long_runs,
    test_nccl_sweep,
    test_node_performance,
    test_osu,
    test_scripts,
    test_start_times,
    test_storage,
)
from tests.jobs.allreduce import Runs, output
from tests.jobs.running import job, job_folder, plan_with
from tests.jobs.training_logs import megatron_log

ENVIRONMENT = assets.folder("recipes") / "lib/environment.sh"
MANUAL = Path("/usr/share/man/man1")
PROGRAMS = ("awk", "cat", "cut", "grep", "head", "mpirun", "sed", "sort", "srun", "stat", "timeout", "tr", "wc")


def hostile(folder: Path) -> dict[str, str]:
    """A shell with labels, colours, another locale, other options of Bash, and programs of its own."""
    profile = folder / "profile"
    profile.write_text(
        "shopt -s expand_aliases; alias srun='echo alias'; readonly TMOUT=600\n"
        'cd() { builtin cd "$@"; pwd; }; set -C\n'
    )
    functions = {f"BASH_FUNC_{name}%%": "() { echo from a function; }" for name in PROGRAMS}
    return functions | {
        "BASH_ENV": str(profile),
        "ENV": str(profile),
        "SHELLOPTS": "noglob:noclobber:posix",
        "BASHOPTS": "nullglob:failglob:nocasematch:dotglob",
        "POSIXLY_CORRECT": "1",
        "CDPATH": "/usr:.",
        "GLOBIGNORE": "*",
        "TMOUT": "1",
        "SECONDS": "1000000",
        "LC_ALL": "de_DE.UTF-8",
        "LANGUAGE": "de",
        "GREP_OPTIONS": "--color=always",
        "GREP_COLORS": "mt=01;31",
        "FORCE_COLOR": "1",
        "DF_BLOCK_SIZE": "human-readable",
        "BLOCK_SIZE": "human-readable",
        "TIME_STYLE": "+%s",
        "run_verdict": "pass",
        "SLURM_LABELIO": "1",
        "SLURM_TIMELIMIT": "1",
        "SLURM_NTASKS": "1",
        "SLURM_TIME_FORMAT": "relative",
        "SLURM_CLUSTERS": "other",
        "SLURM_CPU_BIND": "map_cpu:0",
        "SRUN_OUTPUT": "none",
        "SBATCH_PARTITION": "other",
        "SQUEUE_STATES": "CD",
        "PYXIS_CONTAINER_IMAGE": "other",
        "NCCL_ALGO": "Tree",
        "NCCL_IB_DISABLE": "1",
        "OMPI_MCA_btl": "tcp,self",
        "UCX_MAX_RNDV_RAILS": "1",
        "CUDA_VISIBLE_DEVICES": "0",
        "FUNCNEST": "1",
        "OMP_NUM_THREADS": "1",
        "OMP_PROC_BIND": "master",
        "KMP_AFFINITY": "disabled",
        "NVIDIA_TF32_OVERRIDE": "1",
        "MLX5_SINGLE_THREADED": "0",
    }


def nccl_allreduce(path: Path) -> None:
    run = Runs(job_folder(path, plan_with(job("nccl-allreduce", 2))), path, 2)
    assert run.job(output("189.6")) == 0, run.done.stdout + run.done.stderr
    assert run.job(output("99")) == 1
    environment = (run.results / "run.json").read_text().partition('"environment"')[2].partition("\n")[0]
    assert "NCCL_" in environment
    for name in ("NCCL_ALGO", "NCCL_IB_DISABLE", "UCX_MAX_RNDV_RAILS", "OMPI_MCA_btl", "CUDA_VISIBLE_DEVICES"):
        assert f'"{name}"' not in environment


def nccl_sweep(path: Path) -> None:
    case = test_nccl_sweep.Case("all_reduce", test_nccl_sweep.NO_BASELINE, 369)
    array = parts.node_array("hpc", catalog.vm_size("Standard_ND96isr_H100_v5"), max_nodes=64)
    folder = job_folder(path, plan_with(job("nccl-sweep", 3), array), ("hpc-1", "hpc-2", "hpc-3"))
    (path / "output").write_text(case.output())
    (path / "nccl").write_text(case.log())
    folder.environment |= {
        "SET_SWEEP_FROM": "4G", "SET_MESSAGE_SIZE": "16G", "SET_RUNS_DIR": "", "SET_COLLECTIVES": "all_reduce",
        "SET_NCCL_TEST_BINARY": "all_reduce_perf", "FAKE_GPUS": "8", "FAKE_OUTPUT": str(path / "output"),
        "FAKE_NCCL_LOG": str(path / "nccl"),
    }  # fmt: skip
    done = folder.run()
    assert done.returncode == case.status, done.stdout + done.stderr


def megatron(recipe: str) -> Callable[[Path], None]:
    def check(path: Path) -> None:
        _, ran = test_scripts.training(path, recipe, megatron_log(100), SET_DATA="mock", SET_ITERATIONS="100")
        assert ran.returncode == 0, ran.stdout + ran.stderr

    return check


RECIPES: dict[str, Callable[[Path], None]] = {
    "fabric-bisect": test_fabric_bisect.test_a_healthy_cluster_passes,
    "fabric-links": test_fabric_links.test_healthy_ports_pass,
    "fabric-pairs": test_fabric_pairs.test_a_healthy_cluster_passes_and_its_rounds_are_kept,
    "gpt3-175b": megatron("gpt3-175b"),
    "mpt": lambda path: test_long_runs.test_a_spare_node_takes_the_place_of_one_that_does_not_answer(path, "mpt"),
    "nccl-allreduce": nccl_allreduce,
    "nccl-sweep": nccl_sweep,
    "node-health": test_scripts.test_health_passes,
    "node-performance": test_node_performance.test_each_culprit_is_named_and_no_one_else,
    "opt-175b": megatron("opt-175b"),
    "osu": test_osu.test_healthy_nodes_pass_and_the_curves_of_a_pair_are_kept,
    "own": test_long_runs.test_a_checkpoint_that_finds_no_room_ends_the_run_with_a_record,
    "smoke": test_scripts.test_smoke_writes_nothing_into_the_root_of_the_shared_file_system,
    "start-times": test_start_times.test_containers_are_imported_and_started_on_every_node,
    "storage": test_storage.test_file_systems_are_judged_by_their_tier_or_by_earlier_runs,
}


def test_every_recipe_is_here() -> None:
    assert RECIPES.keys() == set(recipe_names())


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_hostile_shell_changes_no_verdict(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SHELL", hostile(tmp_path))
    (tmp_path / "job").mkdir()
    RECIPES[recipe](tmp_path / "job")


def left_of(names: set[str], **environment: str) -> set[str]:
    given = dict.fromkeys(names, "1") | {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "7"} | environment
    script = f". '{ENVIRONMENT}'; compgen -e"
    done = subprocess.run(["bash", "-c", script], env=given, capture_output=True, text=True, check=True)
    return names & set(done.stdout.split())


def described(page: str, *sections: str) -> set[str]:
    """Variables that sections of a manual page of Slurm describe."""
    text = gzip.decompress((MANUAL / page).read_bytes()).decode(errors="replace").replace("\\-", "-")
    parts = re.split(r"^\.SH ", text, flags=re.MULTILINE)
    chosen = "".join(part for part in parts if part.lstrip('"').startswith(sections))
    return set(re.findall(r"^\\fB([A-Z]+_[A-Z0-9_]+)\\f[RP]", chosen, flags=re.MULTILINE))


@pytest.mark.skipif(not (MANUAL / "srun.1.gz").exists(), reason="the manual of Slurm is not installed")
def test_every_option_that_slurm_takes_from_the_environment_is_forgotten() -> None:
    """But for the names by which Slurm also tells a job what it has got."""
    step = described("srun.1.gz", "INPUT ENVIRONMENT")
    assert len(step) > 80
    assert {"SLURM_LABELIO", "SLURM_TIMELIMIT"} <= step
    stays = left_of({name for name in step if name.startswith(("SLURM_", "SRUN_"))})
    assert stays <= {"SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES",
                     "SLURM_NNODES"}  # fmt: skip
    batch = {name for name in described("sbatch.1.gz", "INPUT ENVIRONMENT") if name.startswith("SBATCH_")}
    assert left_of(batch) == {"SBATCH_ACCOUNT", "SBATCH_QOS", "SBATCH_RESERVATION", "SBATCH_WCKEY"}
    for page in ("squeue.1.gz", "sinfo.1.gz", "scontrol.1.gz", "sacct.1.gz", "scancel.1.gz"):
        assert left_of(described(page, "ENVIRONMENT")) <= {"SLURM_CONF", "SLURM_CONF_OUT"}, page


@pytest.mark.skipif(not (MANUAL / "sbatch.1.gz").exists(), reason="the manual of Slurm is not installed")
def test_what_slurm_says_of_a_job_and_of_a_task_stays() -> None:
    scripts = b"".join(path.read_bytes() for path in assets.folder("recipes").rglob("*.sh"))
    used = {name.decode() for name in re.findall(rb"\$\{?(SLURMD?_[A-Z_]+)", scripts)}
    assert {"SLURM_JOB_NODELIST", "SLURM_PROCID", "SLURMD_NODENAME"} <= used
    # NTASKS is that of a task, which begins with what the job's first script has left.
    assert used - left_of(used) <= {"SLURM_NTASKS"}
    assert left_of(used, CF_FORGOTTEN="job 7") == used
    assert left_of({"SLURM_LABELIO"}, CF_FORGOTTEN="job 6") == set(), "of another job"
    kept = {"PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR", "https_proxy", "HF_TOKEN", "SET_ITERATIONS", "PYTHONPATH"}
    assert left_of(kept) == kept


TUNED = {
    "OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND", "KMP_AFFINITY", "KMP_HW_SUBSET", "GOMP_CPU_AFFINITY", "NCCL_ALGO",
    "NVIDIA_TF32_OVERRIDE", "MLX5_SINGLE_THREADED", "MLX5_SHUT_UP_BF", "RDMAV_HUGEPAGES_SAFE", "RDMAV_FORK_SAFE",
    "ROMIO_HINTS", "IOR_HINT__MPI__romio_cb_write", "CUDA_LAUNCH_BLOCKING", "UCX_TLS", "FI_PROVIDER",
}  # fmt: skip
PLACES = {
    "CUDA_HOME", "CUDA_PATH", "CUDA_CACHE_PATH", "HIP_PATH", "UCX_HOME", "I_MPI_ROOT", "FI_PROVIDER_PATH", "ROCM_PATH",
    "NCCL_HOME", "OMP_SETTING",
}  # fmt: skip


def test_benchmarks_forget_how_programs_run_and_keep_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "settings.env").write_text("OMP_SETTING=1\n")
    script = f". '{ENVIRONMENT}'; . '{ENVIRONMENT.parent}/records.sh'; forget_tuning; compgen -e"
    given = dict.fromkeys(TUNED | PLACES, "1") | {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "7"}
    done = subprocess.run(["bash", "-c", script], env=given, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (TUNED | PLACES) & set(done.stdout.split()) == PLACES


@pytest.mark.parametrize("name", ["module", "_module_raw", "_moduleraw", "ml"])
def test_what_loads_modules_stays(name: str) -> None:
    """As Lmod and Environment Modules of several releases name it."""
    given = {"PATH": "/usr/bin:/bin", f"BASH_FUNC_{name}%%": "() { echo loaded; }", "BASH_FUNC_other%%": "() { :; }"}
    script = f"set -e; . '{ENVIRONMENT}'; {name}; ! declare -F other"
    done = subprocess.run(["bash", "-c", script], env=given, capture_output=True, text=True, check=True)
    assert done.stdout == "loaded\n"


def test_what_a_hardened_node_has_made_read_only_ends_no_job(tmp_path: Path) -> None:
    (tmp_path / "profile").write_text(
        "readonly TMOUT=600; export TMOUT; readonly CUDA_DEVICE_ORDER=x; export CUDA_DEVICE_ORDER\n"
    )
    script = f"set -euo pipefail; . '{ENVIRONMENT}'; echo goes on"
    given = {"PATH": "/usr/bin:/bin", "BASH_ENV": str(tmp_path / "profile")}
    done = subprocess.run(["bash", "-c", script], env=given, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")
