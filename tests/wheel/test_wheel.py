"""A wheel is built from a clone with files that git does not have, installed elsewhere, and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.command import ROOT

STRAY = ("projects/stray.txt", "generator/__pycache__/stray.pyc", "cluster_defs/.hidden", "stray/file.txt")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def run(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program; its output is shown when it fails."""
    done = subprocess.run(
        words, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files as they are here, in a repository of their own, with others beside them that git does not have."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    for name in STRAY:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("not in git")
    return folder


@pytest.fixture(scope="module")
def packages(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source archive and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(checkout), folder=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(packages: Path) -> Path:
    (found,) = packages.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel, and the dependencies of this one behind it."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder, with_pip=False, symlinks=True)
    interpreter = folder / "bin" / "python"
    words = ["--disable-pip-version-check", "--quiet", "install", "--no-deps", "--no-index", str(wheel)]
    run(sys.executable, "-m", "pip", "--python", str(interpreter), *words, folder=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    # Packages that are found by a .pth file come after those that are installed, and their own .pth files do not count.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return interpreter


def test_what_travels(checkout: Path, packages: Path, wheel: Path) -> None:
    """Every tracked file of the generator and its sources, under the installed name, and nothing else."""
    tracked = [name for name in git(checkout, "ls-files", "-z").split("\0") if name]
    sources = ("bicep_templates/", "bootstrap/", "cluster_defs/", "projects/", "recipes/")
    expected = {f"cycleforge/{name.removeprefix('generator/')}" for name in tracked if name.startswith("generator/")}
    expected |= {f"cycleforge/_assets/{name}" for name in tracked if name.startswith(sources)}
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if ".dist-info/" not in name} == expected
    (source,) = packages.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert names == {*tracked, "PKG-INFO"}


def test_the_archive_and_the_checkout_give_the_same_wheel(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    """A distributor who builds from the source archive ships what we ship."""
    words = ["--wheel", "--no-isolation", "--outdir", str(tmp_path), str(checkout)]
    run(sys.executable, "-m", "build", *words, folder=tmp_path)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_package_is_called_cycleforge(python: Path, tmp_path: Path) -> None:
    """No other name is taken in the user's environment, and the program is there."""
    script = "import cycleforge, importlib.util, sys; print(cycleforge.__file__); import cycleforge.cli.build"
    where = run(str(python), "-c", script + "; assert not {*sys.modules} & {'generator'}", folder=tmp_path).stdout
    assert str(python.parents[1]) in where
    assert run(str(python.parent / "cycleforge"), "--version", folder=tmp_path).stdout.startswith("cycleforge ")


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes()) for path in found}


def test_it_builds_the_same_folder(python: Path, tmp_path: Path) -> None:
    """Byte for byte what the checkout builds, with the same modes."""
    words = ("build", str(ROOT / "cluster_defs" / "minimal.yaml"), "--out")
    run(str(python), "-m", "cycleforge", *words, str(tmp_path / "wheel"), folder=tmp_path)
    run(sys.executable, "-m", "generator", *words, str(tmp_path / "checkout"), folder=tmp_path, PYTHONPATH=str(ROOT))
    assert files(tmp_path / "wheel") == files(tmp_path / "checkout")


EVERY_MODULE = """
import pkgutil, sys, cycleforge
for module in pkgutil.walk_packages(cycleforge.__path__, "cycleforge."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
        print(module.name)
assert "generator" not in sys.modules
"""


def test_every_module_can_be_imported(python: Path, wheel: Path, tmp_path: Path) -> None:
    """An import of ours by another name than the installed one would fail where only the wheel is."""
    imported = run(str(python), "-c", EVERY_MODULE, folder=tmp_path).stdout.split()
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if name.endswith(".py") and "/_assets/" not in name]
    names = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in modules}
    assert {*imported} == names - {"cycleforge", "cycleforge.__main__"}


def test_the_tests_of_the_command(python: Path) -> None:
    """Once more, in processes and inside one, with the wheel in the place of the checkout."""
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.wheel.installed"]
    chosen = ["tests/cli", "tests/health/test_process.py"]
    done = run(str(python), *words, *chosen, folder=ROOT, CYCLEFORGE_INSTALLED_PYTHON=str(python), PYTEST_ADDOPTS="")
    assert " passed" in done.stdout
