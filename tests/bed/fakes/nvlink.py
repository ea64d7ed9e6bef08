"""What `nvidia-smi nvlink --status` prints, for every fake of it.

Layout: utkuozdemir/nvidia_gpu_exporter (MIT), internal/captures: h100-80gb-hbm3 590.48.01 (a line of each link),
geforce-rtx-2080-super 610.57.04 (no link is up, exit code 0), h100-mig 590.48.01, geforce-rtx-4080-super 595.71.05 (a
GPU without NVLink). Other rates: NVIDIA/nccl-tests#228 (A100), Azure/azhpc-diagnostics#73 (V100, and an inactive link),
NVIDIA/k8s-test-infra#371 (GB200).
"""

from __future__ import annotations

from collections.abc import Mapping

HEADING = "GPU {gpu}: {name} (UUID: GPU-0000000{gpu}-1111-2222-3333-444444444444)"
LINK = "\t Link {link}: {state}"
INACTIVE = "<inactive>"
ALL_INACTIVE = "NVML: Unable to retrieve Nvlink information as all links are inActive"
IN_MIG_MODE = "Nvlink queries are not supported for Devices in MIG mode"
NO_NVLINK = "Device does not have or support Nvlink"

NAMES = {
    "A100": "NVIDIA A100-SXM4-80GB", "H100": "NVIDIA H100 80GB HBM3", "H100 NVL": "NVIDIA H100 NVL",
    "H200": "NVIDIA H200", "V100": "Tesla V100-SXM2-32GB", "GB200": "NVIDIA GB200", "GB300": "NVIDIA GB300",
    "T4": "Tesla T4",
}  # fmt: skip
RATES = {"A100": "25 GB/s", "V100": "25.781 GB/s", "GB200": "53.125 GB/s", "GB300": "53.125 GB/s"}
RATE = "26.562 GB/s"


def status(
    model: str, gpus: int, links: int, unwired: tuple[int, ...] = (), words: Mapping[int, str] | None = None
) -> str:
    """The whole output; links in `unwired` are inactive on each GPU, `words` stand in place of the links of a GPU."""
    lines = []
    for gpu in range(gpus):
        lines.append(HEADING.format(gpu=gpu, name=NAMES[model]))
        if words and gpu in words:
            lines.append(words[gpu])
            continue
        states = (INACTIVE if link in unwired else RATES.get(model, RATE) for link in range(links))
        lines += [LINK.format(link=link, state=state) for link, state in enumerate(states)]
    return "".join(f"{line}\n" for line in lines)
