"""Trains a small network in a minute or less: an example of a script that `own` can stop, lose and go on with.

It runs on CPUs (gloo) and GPUs (NCCL). A student network learns what a fixed teacher network answers. The data of a
step depend on nothing but its number, and all arithmetic is deterministic: a run that was killed and has gone on ends
with the same weights as one that was not, on the same number of processes.

What makes a script fit for `own`, and what it is told by the environment:
  * CHECKPOINT_DIR, SAVE_EVERY: it writes a checkpoint every so many steps, under another name first, so that a file of
    that name is whole; then the step into `latest`, in the same way. It begins at the newest checkpoint it can read.
  * STOP_AT (Unix time, may be empty), STOP_FILE: when the time has come or the file is there it writes a checkpoint
    and ends with status 0.
  * It prints `step N loss X` lines, from which the recipe judges that the loss falls.
"""

import argparse
import hashlib
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

SEED, INPUTS, WIDTH, OUTPUTS = 1234, 32, 128, 8


def network(seed, width):
    """Two layers with weights that follow from the seed."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(INPUTS, width), nn.Tanh(), nn.Linear(width, OUTPUTS))


def batch(step, rank, size, device):
    """The inputs of one rank in one step, the same whenever they are asked for."""
    generator = torch.Generator().manual_seed(SEED + step * 10007 + rank)
    return torch.randn(size, INPUTS, generator=generator).to(device)


def written_whole(path, write):
    """Write under another name, force it to disk, and only then give it its name: a reader never sees half a file."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


class Checkpoints:
    """step-0000050.pt and so on, and `latest` with the number of the newest one."""

    def __init__(self, folder, keep):
        self.folder, self.keep = folder, keep

    def save(self, step, state):
        written_whole(self.folder / f"step-{step:07d}.pt", lambda file: torch.save(state, file))
        written_whole(self.folder / "latest", lambda file: file.write(f"{step}\n".encode()))
        for old in sorted(self.folder.glob("step-*.pt"))[: -self.keep]:
            old.unlink()

    def newest(self, device):
        """Step and state of the newest checkpoint that can be read; 0 and None if there is none."""
        for path in sorted(self.folder.glob("step-*.pt"), reverse=True):
            try:
                return int(path.stem.split("-")[1]), torch.load(path, map_location=device)
            except Exception as error:  # torch raises many kinds for a damaged file
                print(f"{path} cannot be read ({error!r}); the one before it is tried", flush=True)
        return 0, None


def asked_to_stop():
    """Whether the job has to end soon."""
    stop_at = os.environ.get("STOP_AT", "")
    if stop_at and time.time() >= float(stop_at):
        return True
    return bool(os.environ.get("STOP_FILE")) and Path(os.environ["STOP_FILE"]).exists()


def mean_over_ranks(model, loss, stop, device):
    """Average gradients and loss; any rank may ask for the stop, and all learn of it in the same step."""
    parts = [weight.grad.reshape(-1) for weight in model.parameters()]
    extra = torch.stack([loss.detach(), torch.tensor(float(stop), device=device)])
    flat = torch.cat([*parts, extra])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    place = 0
    for weight in model.parameters():
        weight.grad.copy_(flat[place : place + weight.numel()].view_as(weight))
        place += weight.numel()
    return flat[-2].item(), flat[-1].item() > 0


def fingerprint(model):
    """A short text that differs when any bit of any weight does."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def train(arguments, device, rank):
    """All steps that are left; whether the end was reached."""
    teacher, model = network(SEED, WIDTH).to(device), network(SEED + 1, WIDTH).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    checkpoints = Checkpoints(Path(os.environ["CHECKPOINT_DIR"]), arguments.keep)
    done, state = checkpoints.newest(device)
    agreed = torch.tensor([done, -done], device=device)
    dist.all_reduce(agreed, op=dist.ReduceOp.MAX)
    if agreed[0].item() != -agreed[1].item():
        sys.exit("ranks have read different checkpoints: is CHECKPOINT_DIR on a shared file system?")
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    if rank == 0:
        print(f"{dist.get_world_size()} processes on {device.type}, from step {done}", flush=True)
    for step in range(done + 1, arguments.steps + 1):
        started = time.monotonic()
        inputs = batch(step, rank, arguments.batch, device)
        optimizer.zero_grad()
        with torch.no_grad():
            wanted = teacher(inputs)
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        value, stop = mean_over_ranks(model, loss, asked_to_stop(), device)
        optimizer.step()
        time.sleep(arguments.pause)
        if rank == 0:
            seconds = time.monotonic() - started
            print(f"step {step} of {arguments.steps} loss {value:.6f} seconds {seconds:.4f}", flush=True)
        if rank == 0 and (step % arguments.save_every == 0 or stop or step == arguments.steps):
            checkpoints.save(step, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
        if stop and step < arguments.steps:
            if rank == 0:
                print(f"stopped at step {step}, as asked", flush=True)
            return
    if rank == 0:
        print(f"finished, weights {fingerprint(model)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="A small network, trained on any number of processes.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=256, help="samples of each process in a step")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--save-every", type=int, default=int(os.environ.get("SAVE_EVERY") or 100))
    parser.add_argument("--keep", type=int, default=3, help="checkpoints that stay")
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait in every step")
    arguments = parser.parse_args()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    train(arguments, device, dist.get_rank())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
