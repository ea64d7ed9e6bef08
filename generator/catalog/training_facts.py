"""Models, what training needs of file systems and containers, and how fast it is."""

from __future__ import annotations

from .files import Fact, Figure, Row, Rows, Value


class LayerBytes(Value[int], frozen=True, kw_only=True):
    mlp: int


class Activations(Fact, frozen=True, kw_only=True):
    full_recompute: Value[int]
    layer: LayerBytes
    scores: Value[int]
    usable_share: Value[Figure]


class StateBytes(Row, frozen=True, kw_only=True):
    weights: int
    gradients: int
    optimizer: int


class Family(Fact, frozen=True, kw_only=True):
    """Of the models that one framework trains: bytes per parameter, and rules of thumb."""

    checkpoint_bytes_per_parameter: Value[int]
    training_bytes_per_parameter: StateBytes
    min_learning_rate_share: Value[Figure] = Value(value=0)
    samples_per_gpu: Value[int] = Value(value=0)


class Microbatch(Fact, frozen=True, kw_only=True):
    """What was published for a model on so many GPUs of that memory."""

    model: str
    gpus: int
    memory_gb: int
    microbatch: int


class Preset(Row, frozen=True, kw_only=True):
    family: str
    layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int
    global_batch: int | None = None
    microbatch: int | None = None
    batch_tokens: int | None = None
    learning_rate: str | None = None
    checkpointing: bool = False


class WithoutBf16(Row, frozen=True, kw_only=True):
    gpus: tuple[str, ...]


class Models(Fact, frozen=True, kw_only=True):
    """Model presets of the training recipes and the bytes that they take."""

    activations: Activations
    families: dict[str, Family]
    microbatches: Rows[tuple[Microbatch, ...]]
    models: dict[str, Preset]
    without_bf16: WithoutBf16


class DataSet(Row, frozen=True, kw_only=True):
    stages: dict[str, int]
    """Bytes of each."""


class Downloads(Row, frozen=True, kw_only=True):
    """So many requests in a window, and the share of them that a job takes."""

    requests: int
    window_s: int
    share: Figure


class Image(Row, frozen=True, kw_only=True):
    bytes: int


class ImportScratch(Row, frozen=True, kw_only=True):
    times: int
    unknown_bytes: int


class LedgerShare(Row, frozen=True, kw_only=True):
    warn_share: Figure


class StorageRates(Row, frozen=True, kw_only=True):
    """What one file, and one storage account, take."""

    file_gb_per_s: int | None
    write_gb_per_s: Figure | None


class Training(Fact, frozen=True, kw_only=True):
    """What training needs of file systems, and from which shares and seconds on a plan warns."""

    checkpoint_seconds: Value[int]
    data_sets: dict[str, DataSet]
    downloads: Downloads
    images: dict[str, Image]
    import_scratch: ImportScratch
    ledger: LedgerShare
    storage: dict[str, StorageRates]
    """By protocol."""


class Container(Row, frozen=True, kw_only=True):
    """A published image of which is known what is in it."""

    reference: str
    """As enroot takes it."""
    cuda: str
    nccl: str | None
    frameworks: tuple[str, ...]


class CudaDriver(Row, frozen=True, kw_only=True):
    branch: int
    forward: tuple[int, ...]
    """Older branches on which it runs as well, with the compatibility package of the images."""


class Framework(Row, frozen=True, kw_only=True):
    version: str | None
    commit: str
    url: str


class ImageDriver(Fact, frozen=True, kw_only=True):
    since: int
    """Date of the first build that has it."""
    driver: str


class TrainingVersions(Fact, frozen=True, kw_only=True):
    """What training runs, the driver that a CUDA needs, and the one that an image of nodes has."""

    containers: dict[str, Container]
    cuda_drivers: Rows[dict[str, CudaDriver]]
    frameworks: dict[str, Framework]
    image_drivers: Rows[dict[str, tuple[ImageDriver, ...]]]


class PeakTflops(Row, frozen=True, kw_only=True):
    by_gpu: dict[str, Figure]


class Published(Row, frozen=True, kw_only=True):
    """What was published for a model on GPUs of a kind, for each number of them."""

    model: str
    gpu: tuple[str, ...]
    memory_gb: int
    gpus: tuple[int, ...]
    convicts: bool
    """Whether a run that is much slower fails."""
    mfu: tuple[Figure, ...] = ()
    model_tflops: tuple[Figure, ...] = ()
    tokens_per_gpu: tuple[Figure, ...] = ()
    words_per_s: tuple[Figure, ...] = ()
    warn_share: Figure | None = None


class Shares(Row, frozen=True, kw_only=True):
    fail_below: Figure
    warn_below: Figure


class Throughput(Fact, frozen=True, kw_only=True):
    """What a GPU could do at most, what was published, and the shares of it below which a job warns or fails."""

    peak_tflops: PeakTflops
    published: tuple[Published, ...]
    sequence: Value[int]
    shares: Shares
