"""A trained model as transformers reads it."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from robust_jax.errors import InputError, RunError
from robust_jax.finetune.export import export
from robust_jax.finetune.options import ExportOptions
from robust_jax.finetune.training import train
from robust_jax.models import LocalModel
from robust_jax.models.sources import open_checkpoint
from tests.finetune.test_training import options


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 4], ids=["all weights", "adapters"])
def test_transformers_gives_the_same_logits(data: Path, tmp_path: Path, rank: int) -> None:
    run, out = tmp_path / "run", tmp_path / "exported"
    train(options(data, run, lora_rank=rank, rate=1e-2, steps=2, evaluate_every=2))
    export(ExportOptions(run=run, out=out))
    text = "Question: Ava picks 9 tulips. How many?\nAnswer:"
    ids = AutoTokenizer.from_pretrained(out)(text)["input_ids"]
    assert ids == open_checkpoint("builtin:tiny").tokenizer.encode([text], special_tokens=True)[0]
    ours = LocalModel("exported", open_checkpoint(str(out)))
    positions = jnp.arange(len(ids))[None]
    logits = ours.decoder.logits(ours.decoder(jnp.array([ids]), positions).hidden)[0]
    theirs = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    with torch.no_grad():
        wanted = theirs(torch.tensor([ids])).logits[0].numpy()
    np.testing.assert_allclose(logits, wanted, rtol=1e-4, atol=1e-4)
    before = LocalModel("before", open_checkpoint("builtin:tiny")).decoder
    assert np.abs(before.logits(before(jnp.array([ids]), positions).hidden)[0] - wanted).max() > 0.1
    assert ours.defaults == open_checkpoint("builtin:tiny").config.defaults
    rounded = tmp_path / "rounded"
    export(ExportOptions(run=run, out=rounded, dtype="bfloat16"))
    assert json.loads((rounded / "config.json").read_text())["dtype"] == "bfloat16"
    for taken in (out, out / "config.json"):
        with pytest.raises(InputError, match="not empty"):
            export(ExportOptions(run=run, out=taken))
    with a_small_disk(), pytest.raises(RunError, match=r"cannot write to .* free space or choose another --out"):
        export(ExportOptions(run=run, out=tmp_path / "never"))
    assert {path.name for path in tmp_path.iterdir()} == {"run", "exported", "rounded"}


@contextmanager
def a_small_disk() -> Iterator[None]:
    """No file can become as large as the weights."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_is_no_training_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds a run of 'finetune data'"):
        export(ExportOptions(run=data, out=tmp_path / "exported"))
    with pytest.raises(InputError, match="holds no results yet"):
        export(ExportOptions(run=tmp_path, out=tmp_path / "exported"))
    assert not (tmp_path / "exported").exists()
