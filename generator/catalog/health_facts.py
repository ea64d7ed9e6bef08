"""Node health: common checks, tests, floors that sizes share, and fault codes of drivers."""

from __future__ import annotations

from msgspec import field

from .files import Cited, Fact, Figure, Row, Values, table


class Ready(Cited, frozen=True, kw_only=True):
    ready_s: int


class LookBack(Cited, frozen=True, kw_only=True):
    look_back_h: int


class Ras(Cited, frozen=True, kw_only=True):
    uncorrectable_max: int


class BootServices(Cited, frozen=True, kw_only=True):
    units: tuple[str, ...]
    within_s: int


class DiskSpace(Cited, frozen=True, kw_only=True):
    inodes_percent_max: int
    used_percent_max: int


class Ethernet(Cited, frozen=True, kw_only=True):
    carrier_losses_max: int


class Diagnostic(Cited, frozen=True, kw_only=True):
    level: int


class Cure(Fact, frozen=True, kw_only=True):
    cure: str
    words: str


class Driver(Cited, frozen=True, kw_only=True):
    exit_codes: dict[str, Cure]
    questions: tuple[int, ...]


class Fabric(Cited, frozen=True, kw_only=True):
    grace_s: int


class Pages(Cited, frozen=True, kw_only=True):
    models: tuple[str, ...]


class Services(Cited, frozen=True, kw_only=True):
    wanted: tuple[str, ...]
    may_stop: tuple[str, ...]


class Temperature(Cited, frozen=True, kw_only=True):
    warn_above: int


class Throttling(Cited, frozen=True, kw_only=True):
    error_mask: int


class PortErrors(Cited, frozen=True, kw_only=True):
    port_rcv_errors: int
    port_xmit_discards: int
    symbol_error: int


class Flaps(Cited, frozen=True, kw_only=True):
    fail_at: int
    window_h: int


class LinkRecovery(Cited, frozen=True, kw_only=True):
    link_error_recovery: int


class CommonChecks(Fact, frozen=True, kw_only=True):
    """Checks that are the same for all VM sizes that have what is checked."""

    amd_driver: Ready
    amd_log: LookBack
    amd_ras: Ras
    amd_temperature: Cited
    boot_services: BootServices
    disk_space: DiskSpace
    ethernet: Ethernet
    gpu_clocks: Cited
    gpu_diagnostic: Diagnostic
    gpu_driver: Driver
    gpu_fabric: Fabric
    gpu_pages: Pages
    gpu_peermem: Cited
    gpu_persistence: Cited
    gpu_services: Services
    gpu_temperature: Temperature
    gpu_throttling: Throttling
    ib_errors: PortErrors
    ib_flaps: Flaps
    ib_keys: Cited
    ib_link_recovery: LinkRecovery
    imex_channel: Cited


class FleetStatistics(Cited, frozen=True, kw_only=True):
    fail_percent_below_expected: int
    warn_percent_below_expected: Figure


class SharedCause(Cited, frozen=True, kw_only=True):
    """When so many nodes fail at once that their common cause is elsewhere."""

    always_drain: dict[str, str]
    clear_percent: int
    floor_percent: int
    looks: int
    nodes: int
    percent: int
    window_s: int


class Health(Fact, frozen=True, kw_only=True):
    """Node-health checks of all sizes; those of one are in its file."""

    common_checks: CommonChecks
    fleet_statistics: FleetStatistics
    shared_cause: SharedCause


class TestEnvironment(Cited, frozen=True, kw_only=True):
    """In which the tests ran whose figures are floors."""

    bind_to: str
    hcoll: str
    library_path: str | None
    place: str
    variables: dict[str, str]


class RelativeTests(Cited, frozen=True, kw_only=True):
    """What is run where no floor is published."""

    attempts: int
    loopback_message: str
    loopback_message_end: str
    message: str
    message_bytes: int


class Tool(Cited, frozen=True, kw_only=True):
    arch: tuple[str, ...]
    title: str


class HealthTests(Fact, frozen=True, kw_only=True):
    """How bandwidth is measured."""

    checks: dict[str, tuple[str, ...]]
    """Check → the tools of which it needs one."""
    environments: dict[str, TestEnvironment]
    plain_publishers: Values[tuple[str, ...]]
    relative: RelativeTests
    tools: dict[str, Tool]
    """That images bring."""


class Stream(Cited, frozen=True, kw_only=True):
    """The floor of each of STREAM's four functions, the build of it, its threads and their processors."""

    floor_mb_per_s: int
    places: str
    program: str
    threads: int


class AmdMessage(Cited, frozen=True, kw_only=True):
    """What amdgpu says in the kernel log: an ERE, the name of the finding, and its cure or `warn`."""

    name: str
    pattern: str
    take: str


class AmdMessages(Fact, frozen=True, kw_only=True):
    messages: tuple[AmdMessage, ...]


class BenchmarkShare(Row, frozen=True, kw_only=True):
    share: Figure


class BenchmarkFloor(Row, frozen=True, kw_only=True):
    check: str
    tool: str
    expected: int
    warn: int
    fail: int | None


class BenchmarkTools(Row, frozen=True, kw_only=True):
    copies: str
    gemm: str
    hbm: str
    nvme: str


class TypicalRow(Row, frozen=True, kw_only=True):
    """What someone measured once, by check."""

    gemm_fp16: Figure | None = None
    gemm_fp8e4m3: Figure | None = None
    hbm_copy: Figure | None = None
    hbm_triad: Figure | None = None
    nvme_read: Figure | None = None
    nvme_write: Figure | None = None

    @property
    def figures(self) -> dict[str, Figure]:
        names = (name for name in self.__struct_fields__ if name.partition("_")[0] in ("gemm", "hbm", "nvme"))
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class TypicalFigures(Row, frozen=True, kw_only=True):
    sizes: dict[str, TypicalRow]


class GemmTypes(Row, frozen=True, kw_only=True):
    a100: str
    gb200: str
    h100: str
    mi300x: str


class NodeBenchmarks(Fact, frozen=True, kw_only=True):
    """Figures of node tests by VM size."""

    derived: BenchmarkShare
    """The share of what is typical below which a node warns."""
    floors: dict[str, tuple[BenchmarkFloor, ...]]
    gemm_types: GemmTypes
    tools: BenchmarkTools
    typical: TypicalFigures


class Generations(Cited, frozen=True, kw_only=True):
    models: dict[str, str]


class RecoveryAction(Fact, frozen=True, kw_only=True):
    name: str
    take: str
    shown: tuple[str, ...] = ()


class Sxids(Cited, frozen=True, kw_only=True):
    again_h: int
    always_fatal: tuple[int, ...]
    emitted_by: tuple[str, ...]
    fatal: tuple[int, ...]
    non_fatal: tuple[int, ...]


class Windows(Fact, frozen=True, kw_only=True):
    apart_s: int
    look_back_h: int
    near_s: int


class Xid(Fact, frozen=True, kw_only=True):
    mnemonic: str
    take: str
    emitted_by: tuple[str, ...]
    """GPU generations; empty: none."""
    remap: tuple[str, ...] = ()
    as_: int | None = field(default=None, name="as")
    again_h: int | None = None
    take_v100: str = "-"


class Xids(Fact, frozen=True, kw_only=True):
    """What the driver's fault codes (XID) and those of NVSwitch (SXid) ask for."""

    generations: Generations
    recovery_actions: dict[str, RecoveryAction]
    recovery_actions_source: str
    recovery_words: Row
    sxids: Sxids
    windows: Windows
    xids: dict[str, Xid]
    xids_note: str
    xids_source: str


xids = table("xids", Xids)


def gpu_generation(model: str | None) -> str | None:
    """The generation by which XIDs of a GPU model are judged, for example `h100`; None where no table has the model."""
    known = xids().generations.models
    return next((known[word] for word in (model or "").upper().split() if word in known), None)
