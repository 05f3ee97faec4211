"""Reading and writing Hugging Face checkpoints: config.json and safetensors, never pickle."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from robust_jax.errors import InputError
from robust_jax.models.config import DecoderConfig, read_config
from robust_jax.models.decoder import Decoder

WEIGHTS = "model.safetensors"


def tensor_name(path: tuple[str | int, ...]) -> str:
    """The Llama family's tensor name for a weight of the decoder: ('norm', 'weight') → 'model.norm.weight'."""
    parts = [str(part) for part in path]
    if parts == ["embed_tokens"]:
        return "model.embed_tokens.weight"
    return ".".join(parts if parts[0] == "lm_head" else ["model", *parts])


def load_decoder(directory: Path, dtype: str = "float32") -> Decoder:
    """The decoder stored in a checkpoint directory.

    Raises:
        InputError: no such checkpoint, a damaged file, or tensors that do not fit its config.json: all missing,
            unexpected and misshapen names are in the one message.
    """
    config = read_config(directory)
    decoder = nnx.eval_shape(lambda: Decoder(config, key=jax.random.key(0)))
    wanted = {tensor_name(path): variable for path, variable in _weights(decoder)}
    path = directory / WEIGHTS
    if not path.exists():
        raise InputError(f"{directory} is not a checkpoint: it has no {WEIGHTS}")
    try:
        # The flax reader is the one that knows bfloat16.
        with safe_open(path, framework="flax") as file:
            names = set(file.keys())
            problems = [f"missing {name}" for name in sorted(wanted.keys() - names)]
            problems += [
                f"unexpected {name}" for name in sorted(names - wanted.keys()) if not _is_redundant(name, config)
            ]
            for name in sorted(wanted.keys() & names):
                stored, expected = tuple(file.get_slice(name).get_shape()), wanted[name].shape
                if stored != expected:
                    problems.append(f"{name} has shape {stored}, expected {expected}")
            if problems:
                raise InputError(f"{path} does not fit its config.json: {'; '.join(problems)}")
            for name, variable in wanted.items():
                variable.set_value(jnp.asarray(file.get_tensor(name), dtype))
    except SafetensorError as error:
        raise InputError(f"{path} is damaged ({error}); download it again") from None
    return decoder


def checkpoint_digest(directory: Path) -> str:
    """What tells this checkpoint from another: a digest of its configuration and weights."""
    digest = sha256((directory / "config.json").read_bytes())
    with (directory / WEIGHTS).open("rb") as file:
        while part := file.read(2**24):
            digest.update(part)
    return digest.hexdigest()[:16]


def save_decoder(decoder: Decoder, directory: Path) -> None:
    """Write a checkpoint that `load_decoder` and `transformers` read (the tokenizer is written by its owner)."""
    directory.mkdir(parents=True, exist_ok=True)
    tensors = {tensor_name(path): np.asarray(variable[...]) for path, variable in _weights(decoder)}
    save_file(tensors, directory / WEIGHTS, metadata={"format": "pt"})
    config = json.dumps(decoder.config.to_hf_config(), indent=2) + "\n"
    (directory / "config.json").write_text(config, encoding="utf-8")


def _weights(decoder: Decoder) -> Iterator[tuple[tuple[str | int, ...], nnx.Param]]:
    yield from nnx.to_flat_state(nnx.state(decoder, nnx.Param))


def _is_redundant(name: str, config: DecoderConfig) -> bool:
    """Whether some exporters write this tensor although the configuration makes it superfluous."""
    return name.endswith("rotary_emb.inv_freq") or (config.tie_embeddings and name == "lm_head.weight")
