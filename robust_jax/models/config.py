"""What a decoder looks like: a frozen description that comes from a checkpoint's config.json and checks itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robust_jax.errors import InputError
from robust_jax.types import ModelDefaults


@dataclass(frozen=True)
class DecoderConfig:
    """Shape and constants of a Llama-style decoder."""

    vocab_size: int
    """V."""
    hidden_size: int
    """D."""
    intermediate_size: int
    """F."""
    num_layers: int
    """L."""
    num_heads: int
    """N."""
    num_kv_heads: int
    """K; every key/value head serves N/K query heads."""
    head_dim: int
    """H; not always D/N."""
    norm_eps: float = 1e-5
    rope_theta: float = 10_000.0
    max_positions: int = 2048
    """Longest context in tokens."""
    tie_embeddings: bool = False
    """Whether logits are taken with the input embedding."""
    eos_token_ids: tuple[int, ...] = ()
    """Every id that ends a reply."""
    defaults: ModelDefaults = field(default_factory=ModelDefaults)
    """How the model wants to be asked."""

    def __post_init__(self) -> None:
        if self.num_heads % self.num_kv_heads:
            raise InputError(
                f"a decoder with {self.num_heads} query heads cannot share {self.num_kv_heads} key/value heads evenly"
            )
        if self.head_dim % 2:
            raise InputError(f"rotary positions need an even head width, not {self.head_dim}")

    @classmethod
    def from_hf_config(cls, config: Mapping[str, Any], *, where: str = "config.json") -> "DecoderConfig":
        """Read a Hugging Face config.json of the Llama family, in its old or its transformers 5 spelling.

        Raises:
            InputError: the file asks for something this decoder does not do; it is named, never ignored.
        """
        if config.get("model_type") != "llama":
            raise InputError(f"{where}: model_type {config.get('model_type')!r} is not supported; supported: llama")
        for key, supported in [("hidden_act", "silu"), ("attention_bias", False), ("mlp_bias", False)]:
            if config.get(key, supported) != supported:
                raise InputError(f"{where}: {key}={config[key]!r} is not supported; supported: {supported!r}")
        if config.get("quantization_config"):
            raise InputError(f"{where}: quantised weights are not supported; load the original checkpoint")
        rope = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
        rope_type = rope.get("rope_type", rope.get("type", "default"))
        if rope_type != "default":
            raise InputError(f"{where}: rope type {rope_type!r} is not supported; supported: 'default'")
        try:
            heads = config["num_attention_heads"]
            eos = config.get("eos_token_id")
            return cls(
                vocab_size=config["vocab_size"],
                hidden_size=config["hidden_size"],
                intermediate_size=config["intermediate_size"],
                num_layers=config["num_hidden_layers"],
                num_heads=heads,
                num_kv_heads=config.get("num_key_value_heads") or heads,
                head_dim=config.get("head_dim") or config["hidden_size"] // heads,
                norm_eps=config.get("rms_norm_eps", 1e-6),
                rope_theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
                max_positions=config.get("max_position_embeddings", 2048),
                tie_embeddings=config.get("tie_word_embeddings", False),
                eos_token_ids=tuple(eos) if isinstance(eos, list) else () if eos is None else (eos,),
                defaults=ModelDefaults(**(config.get("robust_jax") or {})),
            )
        except KeyError as missing:
            raise InputError(f"{where}: {missing} is missing") from None

    def to_hf_config(self) -> dict[str, Any]:
        """The config.json that `transformers` loads this decoder from."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_layers,
            "num_attention_heads": self.num_heads,
            "num_key_value_heads": self.num_kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "rms_norm_eps": self.norm_eps,
            "rope_theta": self.rope_theta,
            "max_position_embeddings": self.max_positions,
            "tie_word_embeddings": self.tie_embeddings,
            "eos_token_id": list(self.eos_token_ids),
            "dtype": "float32",
            # Other programs ignore this key; ours reads the model's own prompt form from it.
            "robust_jax": self.defaults._asdict(),
        }


def read_config(directory: Path) -> DecoderConfig:
    """The configuration of a checkpoint directory, with the stop ids that its generation_config.json adds.

    Raises:
        InputError: config.json is missing, is not JSON, or asks for something unsupported.
    """
    path = directory / "config.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{directory} is not a checkpoint: it has no config.json") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    generation = directory / "generation_config.json"
    if generation.exists():
        more = json.loads(generation.read_text(encoding="utf-8")).get("eos_token_id")
        ids = {*_as_list(raw.get("eos_token_id")), *_as_list(more)}
        raw["eos_token_id"] = sorted(ids)
    return DecoderConfig.from_hf_config(raw, where=str(path))


def _as_list(ids: int | list[int] | None) -> list[int]:
    return ids if isinstance(ids, list) else [] if ids is None else [ids]
