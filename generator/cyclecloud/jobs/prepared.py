"""What a run consists of before anything is sent: the job's files, its steps, and the key that stands for all of it."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ...errors import CannotRead
from ...plan.job_steps import installed
from ...plan.jobs import JobPlan
from ...words.suggestions import suggestion
from . import settings as job_settings

JOB = "job.sbatch"
STATE = ".cycleforge"
PROGRAM = "program.sh"
"""In it: what the scheduler runs of us for this folder."""
_PARTS = {
    "runs.sh": ("common.sh", "slurm.sh", "runs.sh"),
    "proofs.sh": ("common.sh", "proofs.sh"),
}
"""Of what runs on the scheduler."""
_SETTINGS = "settings.env"
_STEP = re.compile(r"[0-9][0-9]-[A-Za-z0-9._-]+[.]sbatch")
_LIBRARY = "library.digest"
"""Which of those that are beside the folders of the jobs it sources."""
_DIGEST = re.compile(r"[0-9a-f]{16}\n")
_UNNAMED = re.compile(r"[^A-Za-z0-9._]+")
_LEFT_OUT = {STATE, ".git"}
_KEY_DIGITS = 10
_NAME_SIGNS = 64
"""Of a folder's name; a file system takes 255 for all of the run's."""
_BLOCK = 2**20
_DIRECTIVE = re.compile(rb"#SBATCH[ \t]+(.*)")
_DEPENDENCY = re.compile(rb"(?:^|\s)(?:--dependency(?:[=\s]|$)|-d)")
_WAIT = re.compile(rb"(?:^|\s)(?:--wait|-W)(?:\s|$)")


class Prepared(Struct, frozen=True):
    """One run of a job: all that decides what it does, and nothing that does not."""

    name: str
    """Of the job."""
    folder: Path
    steps: tuple[tuple[str, ...], ...]
    """Batch files in their order, each with the options that sbatch gets for it."""
    settings: Mapping[str, str]
    """What the run has instead of the lines of `settings.env`; empty where the folder has no such file."""
    environment: Mapping[str, str]
    """What sbatch finds in its environment: the settings of a folder that is not of a recipe."""
    plan: JobPlan | None
    """None: a folder of the user's own, in which the exit status of the job is the verdict."""
    key: str

    @property
    def step_names(self) -> tuple[str, ...]:
        """Batch files in their order."""
        return tuple(step[0] for step in self.steps)


def of_plan(job: JobPlan, folder: Path, given: Mapping[str, str], max_nodes: int | None) -> Prepared:
    """A job of the built folder. Raises CannotRead for settings that it does not have."""
    job_settings.check(job, given, max_nodes)
    options = job_settings.node_options(job, given)
    steps = tuple((step.file, *options.get(step.file, ())) for step in job.steps)
    return _keyed(job.name, folder, steps, given, {}, job)


def of_folder(folder: Path, given: Mapping[str, str]) -> Prepared:
    """Any folder with a `job.sbatch`. Raises CannotRead."""
    if not (folder / JOB).is_file():
        near = sorted(path.name for path in folder.glob("*.sbatch"))
        hint = f"there is {', '.join(near)}; the job itself must be called {JOB}" if near else None
        raise CannotRead(f"there is no {JOB} in {folder}", hint)
    files = (*sorted(path.name for path in folder.iterdir() if _STEP.fullmatch(path.name)), JOB)
    for number, file in enumerate(files):
        _check_options(folder / file, is_first=number == 0)
    name = _UNNAMED.sub("-", folder.resolve().name).strip("-.")[:_NAME_SIGNS] or "job"
    return _keyed(name, folder, tuple((file,) for file in files), {}, given, None)


def step_of(prepared: Prepared, word: str) -> str:
    """The batch file that `--from` names, with or without its ending. Raises CannotRead."""
    names = prepared.step_names
    for name in names:
        if word in (name, name.removesuffix(".sbatch")):
            return name
    stems = [name.removesuffix(".sbatch") for name in names]
    hint = suggestion(word, stems) or f"steps: {', '.join(stems)}"
    raise CannotRead(f"job '{prepared.name}' has no step '{word}'", hint)


def shared_folders(prepared: Prepared) -> str:
    """Makes what a training job shares, unless it is there; empty where there is nothing to make."""
    folders = prepared.plan.shared_folders if prepared.plan is not None else ()
    return f"ls -d {shlex.join(folders)} >/dev/null 2>&1 || sudo -n {installed(folders)}" if folders else ""


def library_of(folder: Path) -> Path | None:
    """What the job shares with others of its build, unless its own folder has it. Raises CannotRead."""
    try:
        digest = (folder / _LIBRARY).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CannotRead(f"cannot read {folder / _LIBRARY}: {error}") from error
    if not _DIGEST.fullmatch(digest):
        raise CannotRead(f"{folder / _LIBRARY} names no library", "build the deployment folder again")
    library = folder.resolve().parent / "lib" / digest.strip()
    if (folder / "lib" / library.name).is_dir():
        return None
    if not library.is_dir():
        raise CannotRead(f"{folder} needs {library}, which is missing", "copy jobs/lib beside the folder of the job")
    return library


def copy(folder: Path, target: Path) -> Path:
    """The user's files with what they need, and an empty folder for ours. Raises CannotRead for what cannot be read."""
    library = library_of(folder)
    try:
        shutil.copytree(folder, target, symlinks=True, ignore=lambda _, names: _LEFT_OUT & set(names))
        if library is not None:
            shutil.copytree(library, target / "lib" / library.name)
    except shutil.Error as error:
        source, _, reason = error.args[0][0]
        raise CannotRead(f"cannot copy {source}: {reason}") from error
    except OSError as error:
        raise CannotRead(f"cannot copy {folder}: {(error.strerror or 'error').lower()}") from error
    state = target / STATE
    state.mkdir(mode=0o700)
    return state


def write(prepared: Prepared, target: Path, *, who: str, begin_at: str | None) -> None:
    """The run's folder, as it is sent. Raises CannotRead for what cannot be read."""
    state = copy(prepared.folder, target)
    if prepared.settings:
        path = target / _SETTINGS
        path.write_text(job_settings.changed(path.read_text(encoding="utf-8"), prepared.settings), encoding="utf-8")
    (state / PROGRAM).write_bytes(program("runs.sh"))
    (state / "steps").write_text("".join("\t".join(step) + "\n" for step in prepared.steps), encoding="utf-8")
    environment = state / "environment"
    environment.touch(mode=0o600)
    environment.write_text("".join(f"{name}={text}\n" for name, text in prepared.environment.items()), encoding="utf-8")
    (state / "who").write_text(f"{who}\n", encoding="utf-8")
    (state / "again").touch()
    if begin_at is not None:
        for name in prepared.step_names[: prepared.step_names.index(begin_at)]:
            (state / f"{name}.skipped").write_text("skipped\n", encoding="utf-8")


def program(name: str) -> bytes:
    """What runs on the scheduler, as a whole."""
    here = Path(__file__).parent
    return b"".join((here / part).read_bytes() for part in _PARTS[name])


def _keyed(
    name: str,
    folder: Path,
    steps: tuple[tuple[str, ...], ...],
    settings: Mapping[str, str],
    environment: Mapping[str, str],
    plan: JobPlan | None,
) -> Prepared:
    key = key_of(folder, name, repr(steps), repr(sorted(settings.items())), repr(sorted(environment.items())))
    return Prepared(name, folder, steps, settings, environment, plan, key)


def key_of(folder: Path, *words: str) -> str:
    """What stands for the files of a folder, what they need and these words. Raises CannotRead."""
    # A file's name may be no text.
    library = library_of(folder)
    files = [*_files(folder), *(_files(library) if library else ())]
    text = "\n".join([*files, *words]).encode(errors="surrogateescape")
    return hashlib.sha256(text).hexdigest()[:_KEY_DIGITS]


def _files(folder: Path) -> Iterator[str]:
    """A line for each file: what it is, and what is in it."""
    try:
        for path in sorted(_paths(folder)):
            inside = path.relative_to(folder)
            if path.is_symlink():
                yield f"{inside} -> {_target(path, folder)}"
            elif path.is_file():
                yield f"{inside} {path.stat().st_mode & 0o100:o} {_digest(path)}"
            else:
                raise CannotRead(f"{path} is neither a file nor a folder", "move it out of the folder of the job")
    except OSError as error:
        raise CannotRead(f"cannot read {error.filename}: {(error.strerror or 'error').lower()}") from error


def _paths(folder: Path) -> Iterator[Path]:
    """All that is sent but folders. Raises OSError for a folder that cannot be read, which rglob passes over."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in _LEFT_OUT:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _paths(Path(entry.path))
            else:
                yield Path(entry.path)


def _target(link: Path, folder: Path) -> str:
    """Where a link leads; from the root on, that is a place of the cluster. Raises CannotRead where nothing will be."""
    target = link.readlink()
    end = Path(os.path.normpath(link.parent.relative_to(folder) / target))
    if not target.is_absolute() and end.parts[:1] == (os.pardir,):
        raise CannotRead(
            f"{link} points to {target} outside the folder, which is not copied",
            "replace the link with what it points to, or with an absolute path of the cluster",
        )
    return str(target)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _check_options(file: Path, *, is_first: bool) -> None:
    """Raises CannotRead for an option that the order of the steps replaces, and for one that would hold sbatch."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise CannotRead(f"cannot read {file}: {(error.strerror or 'error').lower()}") from error
    for number, line in enumerate(lines, 1):
        # sbatch reads no further: source of sbatch, src/sbatch/opt.c, next_line and get_argument.
        if line.strip() and not line.startswith(b"#"):
            return
        found = _DIRECTIVE.match(line)
        options = found[1].partition(b" #")[0] if found else b""
        if _WAIT.search(options):
            raise CannotRead(f"{file}:{number}: sbatch would wait (--wait)", "remove it; `cycleforge run --wait` waits")
        if _DEPENDENCY.search(options) and not is_first:
            text = (
                f"{file}:{number}: a dependency of its own (--dependency) would be replaced by that on the step before"
            )
            raise CannotRead(text, "move it to the first step, which all others wait for")
