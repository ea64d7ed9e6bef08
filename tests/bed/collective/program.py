# ruff: noqa: PTH119, PTH123, SIM115
# All of a test program; `tests/bed/collective/__init__.py` says what it does, and installs it with an interpreter's
# line. pathlib would take as long to load as the rest.
# Open MPI's library is called by its C interface. Handles are addresses of its objects.
# Source: https://github.com/open-mpi/ompi/blob/v4.1.x/ompi/include/mpi.h.in
import ctypes
import getopt
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

NAME = os.path.basename(sys.argv[0])
COLLECTIVE = NAME.removesuffix("_mpi").removesuffix("_perf")
IS_RCCL = "rccl" in sys.argv[0]
# Of each collective: the operation that a row names, whether its size is counted per rank, whether it works in place,
# the factor from bandwidth to bus bandwidth for n ranks, and its name in NCCL's log.
KINDS: dict[str, tuple[str, bool, bool, Callable[[int], float], str]] = {
    "all_reduce": ("sum", False, True, lambda n: 2 * (n - 1) / n, "AllReduce"),
    "all_gather": ("none", True, True, lambda n: (n - 1) / n, "AllGather"),
    "reduce_scatter": ("sum", True, True, lambda n: (n - 1) / n, "ReduceScatter"),
    "alltoall": ("none", True, False, lambda n: (n - 1) / n, ""),
    "sendrecv": ("sum", False, False, lambda n: 1.0, ""),
}
OPERATION, PER_RANK, IN_PLACE, FACTOR, NCCL_NAME = KINDS.get(COLLECTIVE, KINDS["all_reduce"])
WORD = {"int8": 1, "uint8": 1, "half": 2, "bfloat16": 2, "float": 4, "int32": 4, "double": 8, "int64": 8}
GIB = 1024**3
GPU = "AMD Instinct MI300X" if IS_RCCL else "NVIDIA H100 80GB HBM3"
ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
SHORT = "t:g:b:e:i:f:n:m:w:N:p:c:o:d:r:z:y:T:G:C:a:R:hJ:S:I:u:s:"
USAGE = f"USAGE: {NAME} \n\t[-t,--nthreads <num threads>] \n\t[-g,--ngpus <gpus per thread>] \n\t[-h,--help]"


def given(name: str, default: str) -> str:
    return os.environ.get(f"FAKE_{name}", default)


def listed(name: str) -> list[str]:
    return [word for word in given(name, "").replace(" ", ",").split(",") if word]


def end(status: int, text: str) -> NoReturn:
    print(text, file=sys.stderr, flush=True)
    sys.stdout.flush()
    # As the real program, which returns from main without telling MPI: the launcher notices.
    os._exit(status)


def say(text: str) -> None:
    print(text, flush=True)


def at(place: str, line: str) -> None:
    """Where a test wants rank 0 to hang or to be killed, in the middle of a line."""
    if given("STOP_AT", "") == place:
        print(line[: len(line) // 2], end="", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if given("HANG_AT", "") == place:
        print(line[: len(line) // 2], end="", flush=True)
        time.sleep(3600)


def bytes_of(text: str) -> int:
    units = {"K": 1024, "M": 1024**2, "G": GIB}
    unit = units.get(text[-1:].upper(), 1)
    return int(float(text[:-1] if unit > 1 else text) * unit)


class Options:
    """The options of nccl-tests, as far as they change what is printed or for how many GPUs a process stands."""

    def __init__(self, arguments: list[str]) -> None:
        try:
            found, _ = getopt.getopt(arguments, SHORT)
        except getopt.GetoptError as error:
            # Prints its usage and ends well.
            say(f"invalid option '{error.opt}'\n{USAGE}")
            sys.exit(0)
        values = dict(found)
        if "-h" in values:
            say(USAGE)
            sys.exit(0)
        for option, plain in (("-I", "0"), ("-S", "0"), ("-C", "0"), ("-N", "1"), ("-r", "0")):
            if values.get(option, plain) != plain:
                end(70, f"the stand-in has no {option} {values[option]}: {__file__}")
        if "-J" in values:
            end(70, "the stand-in has no -J")
        self.least = bytes_of(values.get("-b", "32M"))
        self.most = bytes_of(values.get("-e", "32M"))
        self.step = bytes_of(values.get("-i", "1M"))
        self.factor = int(values.get("-f", "1"))
        self.gpus = int(values.get("-g", "1")) * int(values.get("-t", "1"))
        self.threads = int(values.get("-t", "1"))
        self.check = int(values.get("-c", "1"))
        self.iterations = int(values.get("-n", "20"))
        self.warm_up = int(values.get("-w", "5" if IS_RCCL else "1"))
        self.average = int(values.get("-a", "1"))
        self.type = values.get("-d", "float")
        if self.type not in WORD:
            end(70, f"the stand-in has no type {self.type}")
        if self.least > self.most:
            end(255, f"invalid sizes for 'minbytes' and 'maxbytes': {self.least} > {self.most}")

    def sizes(self) -> list[int]:
        found, size = [], self.least
        while size <= self.most:
            found.append(size)
            following = size * self.factor if self.factor > 1 else size + self.step
            if following <= size:
                break
            size = following
        return found


class Mpi:
    def __init__(self) -> None:
        self.rank, self.size = 0, 1
        if given("WITHOUT_MPI", ""):
            return
        # Half the CPU time of a start is the search for adapters that are not there.
        for name, value in (("pml", "ob1"), ("btl", "self,tcp"), ("mpi_yield_when_idle", "1")):
            os.environ.setdefault(f"OMPI_MCA_{name}", value)
        self.library = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
        self.library.MPI_Init(None, None)
        self.world = self.handle("ompi_mpi_comm_world")
        self.byte, self.long = self.handle("ompi_mpi_byte"), self.handle("ompi_mpi_long")
        self.sum = self.handle("ompi_mpi_op_sum")
        rank, size = ctypes.c_int(), ctypes.c_int()
        self.library.MPI_Comm_rank(self.world, ctypes.byref(rank))
        self.library.MPI_Comm_size(self.world, ctypes.byref(size))
        self.rank, self.size = rank.value, size.value
        self.connect()

    def connect(self) -> None:
        """A connection between any two ranks, opened by the lower one: on a busy machine two that both sides open at
        the same moment sometimes never carry anything."""
        greeting = ctypes.create_string_buffer(1)
        for lower in range(self.size):
            for upper in range(lower + 1, self.size):
                if self.rank == lower:
                    self.library.MPI_Send(greeting, 1, self.byte, upper, 0, self.world)
                elif self.rank == upper:
                    self.library.MPI_Recv(greeting, 1, self.byte, lower, 0, self.world, None)

    def end(self) -> None:
        if not given("WITHOUT_MPI", ""):
            self.library.MPI_Finalize()

    def handle(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.library, name)))

    def all_texts(self, text: str, width: int = 4096) -> list[str]:
        if self.size == 1:
            return [text]
        mine = ctypes.create_string_buffer(text.encode(), width)
        every = ctypes.create_string_buffer(width * self.size)
        self.library.MPI_Allgather(mine, width, self.byte, every, width, self.byte, self.world)
        return [
            every.raw[place : place + width].split(b"\0")[0].decode() for place in range(0, width * self.size, width)
        ]

    def wrong_values(self) -> int:
        """Run the collective on small real data; how many values are wrong, over all ranks."""
        if self.size == 1:
            return int(given("WRONG", "0"))
        size, rank, library = self.size, self.rank, self.library
        array = ctypes.c_long * size
        mine = array(*((rank + 1) * 1000 + place for place in range(size)))
        got = array(*([-1] * size))
        tail = (self.long, self.sum, self.world)
        if COLLECTIVE == "all_reduce":
            library.MPI_Allreduce(mine, got, size, *tail)
            wanted = [1000 * size * (size + 1) // 2 + size * place for place in range(size)]
        elif COLLECTIVE == "all_gather":
            library.MPI_Allgather(mine, 1, self.long, got, 1, self.long, self.world)
            wanted = [(place + 1) * 1000 for place in range(size)]
        elif COLLECTIVE == "reduce_scatter":
            library.MPI_Reduce_scatter_block(mine, got, 1, *tail)
            wanted = [1000 * size * (size + 1) // 2 + size * rank] + [-1] * (size - 1)
        elif COLLECTIVE == "alltoall":
            library.MPI_Alltoall(mine, 1, self.long, got, 1, self.long, self.world)
            wanted = [(place + 1) * 1000 + rank for place in range(size)]
        else:
            following, before = (rank + 1) % size, (rank - 1) % size
            library.MPI_Sendrecv(mine, size, self.long, following, 0, got, size, self.long, before, 0, self.world, None)
            wanted = [(before + 1) * 1000 + place for place in range(size)]
        wrong = ctypes.c_long(sum(value != right for value, right in zip(got, wanted, strict=True)))
        total = ctypes.c_long()
        library.MPI_Allreduce(ctypes.byref(wrong), ctypes.byref(total), 1, *tail)
        return total.value + int(given("WRONG", "0"))


def visible() -> list[str]:
    for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") if IS_RCCL else ("CUDA_VISIBLE_DEVICES",):
        if name in os.environ:
            return [word for word in os.environ[name].split(",") if word]
    return [str(number) for number in range(int(given("GPUS", "8")))]


class Rank:
    """What a process says of itself: its host, its group, the GPUs that it drives."""

    def __init__(self, text: str) -> None:
        self.host, group, gpus, self.lines = text.split("\t")
        self.group = int(group)
        self.gpus = [gpu for gpu in gpus.split(",") if gpu]


def split_of(rank: int) -> int:
    """The group of a rank by NCCL_TESTS_SPLIT."""
    word, _, number = os.environ.get("NCCL_TESTS_SPLIT", "").strip().partition(" ")
    if not word:
        return 0
    return rank // int(number) if word.upper() == "DIV" else rank % int(number)


def described(rank: int, local: int, host: str, options: Options) -> str:
    devices, count, lines, used = visible(), options.gpus, [], []
    first = int(os.environ.get("NCCL_TESTS_DEVICE", local * count))
    if IS_RCCL and len(devices) not in (0, 1) and first + count > len(devices):
        end(3, f"[ERROR] The number of requested GPUs ({first + count}) is greater than the number of GPUs available "
               f"({len(devices)}) on node ({host})")  # fmt: skip
    for place in range(count):
        device = first + place
        if IS_RCCL and devices:
            device %= len(devices)
        if device >= len(devices):
            end(3, f"Invalid number of GPUs: {first + count} requested but only {len(devices)} were found.\n"
                   "Please check the number of processes and GPUs per process.")  # fmt: skip
        number, pid = rank * count + place, os.getpid()
        used.append(devices[device])
        bus = int(devices[device]) + 1
        if IS_RCCL:
            lines.append(
                f"#   Rank {number:2d} Pid {pid:6d} on {host:>10} device {device:2d} [{bus:04x}:00:00.0] {GPU}"
            )
        else:
            group = f"Group {split_of(rank):2d} Pid {pid:6d}"
            lines.append(f"#  Rank {number:2d} {group} on {host:>10} device {device:2d} [{bus:04x}:00:00] {GPU}")
    return "\t".join((host, str(split_of(rank)), ",".join(used), "\n".join(lines)))


def is_slow(ranks: list[Rank]) -> bool:
    """Whether a slow part takes part in what these ranks do."""
    hosts = {rank.host for rank in ranks}
    if hosts & set(listed("SLOW_NODE")):
        return True
    if any(set(pair.split(":")) <= hosts for pair in listed("SLOW_PAIR")):
        return True
    adapters = os.environ.get("NCCL_IB_HCA", "")
    for word in listed("SLOW_RAIL"):
        host, _, rail = word.partition(":")
        gpus = {gpu for rank in ranks if rank.host == host for gpu in rank.gpus}
        names = [name.split(":")[0] for name in adapters.lstrip("=").split(",") if name]
        used = any(name.endswith((f"ib{rail}", f"_{rail}")) for name in names) if names else rail in gpus
        if host in hosts and used:
            return True
    return False


def peak() -> float:
    """GB/s of bus bandwidth for large messages."""
    words = given("BUSBW", "190").split(",")
    named = dict(word.split("=") for word in words if "=" in word)
    return float(named.get(COLLECTIVE) or next((word for word in words if "=" not in word), "190"))


def speed(size: int, ranks: list[Rank], place: str) -> float:
    """Bus bandwidth in GB/s of one measurement of one group."""
    value = peak() * size / (size + float(given("HALF_BYTES", "4194304")))
    if is_slow(ranks):
        value *= 1 - float(given("SLOW_PERCENT", "15")) / 100
    noise = float(given("NOISE_PERCENT", "0"))
    if not noise:
        return value
    # It takes as long to load as the rest of Python.
    from random import Random, SystemRandom

    hosts = sorted({rank.host for rank in ranks})
    seed = given("SEED", "")
    drawn = Random(f"{seed} {hosts} {COLLECTIVE} {size} {place}") if seed else SystemRandom()
    return value * (1 + drawn.uniform(-1, 1) * noise / 100)


def short(value: float, width: int) -> str:
    if IS_RCCL:
        digits = 2 if width < 7 or value < 100 else 1 if value < 10000 else 0
        return f"{value:{width}.{digits}f}"
    for digits in (2, 1, 0):
        text = f"{value:{width}.{digits}f}"
        if len(text) <= width:
            return text
    return f"{value:{width}.1e}"


class Log:
    def __init__(self, host: str, ranks: int, nodes: int) -> None:
        self.file = None
        self.version = given("NCCL_VERSION", "2.27.3+cuda12.9")
        if os.environ.get("NCCL_DEBUG") != "INFO":
            return
        name = os.environ.get("NCCL_DEBUG_FILE", "")
        if name:
            self.file = open(name.replace("%h", host).replace("%p", str(os.getpid())), "a", encoding="utf-8")
        self.tunes = "TUNING" in os.environ.get("NCCL_DEBUG_SUBSYS", "INIT,ENV")
        self.start = f"{host}:{os.getpid()}:{os.getpid()} [0] NCCL INFO"
        self.write(f"NCCL version {self.version}")
        if self.release >= (2, 21):
            self.write(f"comm 0x1 rank 0 nRanks {ranks} nNodes {nodes} localRanks {ranks // nodes} localRank 0 MNNVL 0")

    @property
    def release(self) -> tuple[int, int]:
        words = self.version.split(".")
        return int(words[0]), int(words[1])

    def write(self, text: str) -> None:
        print(f"{self.start} {text}", file=self.file or sys.stdout, flush=True)

    def collective(self, size: int, ranks: int) -> None:
        """NVIDIA/nccl, src/enqueue.cc: until 2.23 the bytes of all ranks, from 2.24 on those of one."""
        algorithm = given("ALGORITHM", "RING")
        if os.environ.get("NCCL_DEBUG") != "INFO" or not self.tunes or not NCCL_NAME or not algorithm:
            return
        share = size // ranks if PER_RANK else size
        if self.release >= (2, 24):
            self.write(f"{NCCL_NAME}: {share} Bytes -> Algo {algorithm} proto SIMPLE channel{{Lo..Hi}}={{0..31}}")
        elif self.release >= (2, 20):
            function = f"{NCCL_NAME}: " if self.release >= (2, 23) else ""
            self.write(f"{function}{size} Bytes -> Algo {ALGORITHMS.index(algorithm)} proto 2 time 3970.683594")


def header(options: Options, most: int) -> list[str]:
    step = f"{options.factor}(factor)" if options.factor > 1 else f"{options.step}(bytes)"
    shape = (
        f"# nThread {options.threads} nGpus {options.gpus // options.threads} minBytes {options.least} maxBytes {most} "
        f"step: {step} warmup iters: {options.warm_up} iters: {options.iterations} agg iters: 1 "
        f"validation: {options.check} graph: 0"
    )
    if IS_RCCL:
        return [shape, "#", "rccl-tests: Version develop:ae3e635", "# Using devices"]
    version = given("NCCL_VERSION", "2.27.3").split("+")[0].split(".")
    code = int(version[0]) * 10000 + int(version[1]) * 100 + int(version[2])
    return [
        f"# nccl-tests version 2.19.6 nccl-headers={code} nccl-library={code}",
        f"# Collective test starting: {NAME}", f"{shape} unalign: 0", "#", "# Using devices",
    ]  # fmt: skip


def table() -> list[str]:
    wide = 5 if IS_RCCL else 6
    words = ("size", "count", "type", "redop", "root")
    first = f"# {words[0]:>10}  {words[1]:>12}  {words[2]:>8}  {words[3]:>6}  {words[4]:>6}"
    third = f"# {'(B)':>10}  {'(elements)':>12}  {'':>8}  {'':>6}  {'':>6}"
    names = f"  {'time':>7}  {'algbw':>6}  {'busbw':>6} {'#wrong' if IS_RCCL else ' #wrong'}"
    units = f"  {'(us)':>7}  {'(GB/s)':>6}  {'(GB/s)':>6}  {'':>{wide}}"
    places = f"# {'':>54}out-of-place                       in-place          "
    return ["#", places, first + names * 2 + ("" if IS_RCCL else " "), third + units * 2 + ("" if IS_RCCL else " ")]


class Job:
    """All ranks of one launch, and what is common to them."""

    def __init__(self, options: Options, mpi: Mpi, host: str) -> None:
        hosts = mpi.all_texts(host, 256)
        local = hosts[: mpi.rank].count(host)
        self.options, self.mpi = options, mpi
        self.ranks = [Rank(text) for text in mpi.all_texts(described(mpi.rank, local, host, options))]
        self.groups = [[rank for rank in self.ranks if rank.group == group] for group in self.group_numbers]
        self.count = mpi.size * options.gpus // len(self.groups)
        self.is_first = mpi.rank == 0
        self.buses: list[float] = []
        self.errors = 0

    @property
    def group_numbers(self) -> list[int]:
        return sorted({rank.group for rank in self.ranks})

    def begin(self) -> None:
        """The header; and large messages are lowered to what the GPUs hold."""
        options = self.options
        memory = float(given("GPU_MEMORY_GIB", "191" if IS_RCCL else "79.1")) * GIB
        reserve = 0 if IS_RCCL else min(-(-memory // (16 * GIB)), 4) * GIB
        cap = int((memory - reserve - GIB) / (3 if options.check else 2))
        if self.is_first:
            at("header", "\n".join(header(options, options.most)))
            for line in (*header(options, options.most), *(rank.lines for rank in self.ranks)):
                say(line)
            if options.most > cap:
                say(f"#\n# Reducing maxBytes to {cap} due to memory limitation")
            for line in table():
                say(line)
        options.most = min(options.most, cap)
        if not IS_RCCL:
            options.least = min(options.least, cap)

    def counted(self, size: int) -> tuple[int, int]:
        """Elements of a row, and the bytes that it names."""
        word = WORD[self.options.type]
        elements = size // word
        if not PER_RANK:
            return elements, elements * word
        # Whole blocks of 16 bytes for each rank.
        block = max(16 // word, 1)
        elements = elements // self.count // block * block
        return elements, elements * word * self.count

    def measure(self, moved: int, place: str) -> str:
        """Four columns of a row, on rank 0."""
        wrong = self.mpi.wrong_values() if self.options.check else 0
        if not self.is_first:
            return ""
        factor = FACTOR(self.count)
        # A group's time is that of its slowest part; over groups the mean, or with -a 3 the longest.
        busy = [max(speed(moved, group, place), 1e-9) for group in self.groups]
        times = [moved * (factor or 1) / bus / 1e3 if moved else 5.0 for bus in busy]
        taken = {0: times[0], 2: min(times), 3: max(times)}.get(self.options.average, sum(times) / len(times))
        bandwidth = moved / 1e3 / taken
        self.buses.append(bandwidth * factor)
        is_checked = self.options.check and (IN_PLACE or place == "out")
        self.errors += bool(is_checked and wrong)
        shown, wide = (f"{wrong:g}", 5 if IS_RCCL else 6) if is_checked else ("N/A", 5)
        return f"  {short(taken, 7)}  {short(bandwidth, 6)}  {short(bandwidth * factor, 6)}  {shown:>{wide}}"

    def run(self, log: "Log | None") -> None:
        for size in self.options.sizes():
            elements, moved = self.counted(size)
            if log:
                log.collective(moved, self.count)
            row = f"{moved:12d}  {elements:12d}  {self.options.type:>8}  {OPERATION:>6}  {-1:6d}"
            row += self.measure(moved, "out") + self.measure(moved, "in")
            if self.is_first:
                at("row", row)
                say(row)


def main() -> None:
    options = Options(sys.argv[1:])
    host = os.uname().nodename.split(".")[0]
    if host in listed("BAD_NODE"):
        if given("HANG_AT", "") == "start":
            time.sleep(3600)
        end(1, f"{host}: Test CUDA failure common.cu:1126 'no CUDA-capable device is detected'")
    mpi = Mpi()
    job = Job(options, mpi, host)
    log = Log(host, job.count, len({rank.host for rank in job.groups[0]})) if job.is_first else None
    job.begin()
    job.run(log)
    if job.is_first:
        finish(job.errors, sum(job.buses) / len(job.buses) if job.buses else 0.0)
    mpi.end()
    sys.exit(int(given("END", "0")) or bool(job.errors))


def finish(errors: int, average: float) -> None:
    lines = ["# Errors with asterisks indicate errors that have exceeded the maximum threshold."] if IS_RCCL else []
    lines += [
        f"# {'Out of bounds values':<20} : {errors} {'FAILED' if errors else 'OK'}",
        f"# {'Avg bus bandwidth':<20} : {average:g} ",
        "#",
    ]
    if not IS_RCCL:
        lines.append(f"# Collective test concluded: {NAME}")
    at("footer", lines[0])
    for line in lines:
        say(line)


if __name__ == "__main__":
    main()
