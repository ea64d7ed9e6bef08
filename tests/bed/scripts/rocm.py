"""ROCm's measuring tools as an MI300X node has them.

Sources: the table of rocm-bandwidth-test 2.6.0 as in public reports (`rocm-bandwidth-test -a`; devices, then one matrix
per direction; a GPU's line has `GPU-…` and its bus address); rccl-tests print the lines of nccl-tests, from which they
are made (ROCm/rocm-systems projects/rccl-tests); an error ends them with NVIDIA's exit codes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bed import perftest
from tests.bed.scripts.amd import AmdNode

_COPIES = Path(__file__).with_name("rocm-bandwidth-test.txt").read_text()
_REFUSES = """\
if [[ "$*" != -a ]]; then printf 'Argument is illegal or needs value: ?\\n\\nSupported arguments:\\n'; exit 0; fi
"""
"""Another option prints the help and ends 0. Source: ROCm/rocm_bandwidth_test rocm_bandwidth_test_parse.cpp"""
_REDUCE = "# Out of bounds values : {wrong} OK\\n# Avg bus bandwidth    : {bus}\\n"
IB_WRITE = """
port="" peer=""
while (($# > 0)); do
    case "$1" in
        -p) port="$2"; shift ;;
        localhost) peer=yes ;;
    esac
    shift
done
if [[ -z "$peer" ]]; then
    printf '   0: 00000000:%04X 00000000:0000 0A 00000000:00000000\\n' "$port" >>"$CYCLEFORGE_ROOT/proc/net/tcp"
    exec sleep 600
fi
""" + perftest.shell(1048576, "VALUE")
"""perftest: the server listens where the script looks for it, the client prints the table."""


def rocm_tools(amd: AmdNode, to: str = "55.2", back: str = "57.0", peer: str = "48.4", bus: str = "330.1",
               wrong: str = "0", crash: str = "", network: str = "395.10") -> None:  # fmt: skip
    """Copies from and to the host and between GPUs and all-reduce (GB/s), wrong values, InfiniBand (Gb/s)."""
    copy_tool(amd.node.root, to, back, peer)
    amd.node.write("opt/rccl-tests/all_reduce_perf", "", 0o755)
    shown = _REDUCE.format(bus=bus, wrong=wrong)
    amd.node.fake("mpirun", f"env >\"$FAKE_STATE/mpirun.env\"\n{crash}\nprintf '{shown}'")
    amd.node.fake("ib_write_bw", IB_WRITE.replace("VALUE", network))
    (amd.node.root / "proc/net").mkdir(exist_ok=True)
    amd.node.forget()


def copy_tool(root: Path, to: str = "55.2", back: str = "57.0", peer: str = "48.4") -> None:
    """rocm-bandwidth-test below a node's root, with the slowest copy of each direction (GB/s)."""
    table = _COPIES.replace(" TO ", f" {to} ").replace(" BACK ", f" {back} ").replace(" PEER ", f" {peer} ")
    path = root / "opt/rocm/bin/rocm-bandwidth-test"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{shutil.which('bash')}\n{_REFUSES}cat <<'END'\n{table}END\n")
    path.chmod(0o755)


def another_copy_tool(amd: AmdNode) -> None:
    """The tool that newer releases have under the same name prints no such table."""
    amd.node.write("opt/rocm/bin/rocm-bandwidth-test", f"#!{shutil.which('bash')}\necho 'plugins: tb, hello'\n", 0o755)
