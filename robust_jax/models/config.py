"""What a decoder looks like: a frozen description that comes from a checkpoint's config.json and checks itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robust_jax.errors import InputError
from robust_jax.models.families import FAMILIES, Family
from robust_jax.models.hf_config import FULL, SLIDING, Fields, read_rope, refuse_unsupported, write_rope
from robust_jax.models.rope import LongRope, Rope
from robust_jax.types import ModelDefaults


@dataclass(frozen=True)
class DecoderConfig:
    """Shape and constants of a decoder of one of the `FAMILIES`."""

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
    family: str = "llama"
    """The model_type of its config.json."""
    norm_eps: float = 1e-5
    rope: Rope = field(default_factory=Rope)
    max_positions: int = 2048
    """Longest context in tokens."""
    sliding_window: int | None = None
    """How many tokens a windowed layer attends to, the newest included."""
    unwindowed_layers: tuple[int, ...] = ()
    """Layers that attend to everything although there is a window."""
    attention_bias: bool = False
    """Whether all four projections of attention have a bias, beyond those that the family always has."""
    mlp_bias: bool = False
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
        width = self.rope.width(self.head_dim)
        if width % 2 or not 0 < width <= self.head_dim:
            raise InputError(f"rotary positions need an even share of a head's {self.head_dim} channels, not {width}")
        if isinstance(self.rope.scaling, LongRope):
            for name in ("short_factor", "long_factor"):
                if (count := len(getattr(self.rope.scaling, name))) != width // 2:
                    raise InputError(f"{name} has {count} entries for {width // 2} rotated pairs of channels")
        for option in ("attention_bias", "mlp_bias"):
            if getattr(self, option) and option not in self.traits.reads:
                raise InputError(f"{option} is not supported in a {self.family} model")
        if self.sliding_window is not None and "sliding_window" not in self.traits.reads:
            raise InputError(f"sliding_window is not supported in a {self.family} model")

    @property
    def traits(self) -> Family:
        """What the family's models have in common."""
        return FAMILIES[self.family]

    def window(self, layer: int) -> int | None:
        """How many tokens a layer attends to; None if all that fit into the context."""
        if self.sliding_window is None or layer in self.unwindowed_layers:
            return None
        return self.sliding_window if self.sliding_window < self.max_positions else None

    @classmethod
    def from_hf_config(cls, config: Mapping[str, Any], *, where: str = "config.json") -> "DecoderConfig":
        """Read a Hugging Face config.json, in its old or its transformers 5 spelling.

        Raises:
            InputError: the file asks for something this decoder does not do; it is named, never ignored.
        """
        try:
            return cls._from_fields(config)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    @classmethod
    def _from_fields(cls, config: Mapping[str, Any]) -> "DecoderConfig":
        model_type = str(config.get("model_type"))
        if model_type not in FAMILIES:
            raise InputError(f"model_type {model_type!r} is not supported; supported: {', '.join(FAMILIES)}")
        family = FAMILIES[model_type]
        refuse_unsupported(config, family)
        fields = Fields({**family.silent, **config})
        width, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
        layers, positions = fields.count("num_hidden_layers"), fields.count("max_position_embeddings")
        window, unwindowed = fields.window(family, layers)
        return cls(
            vocab_size=fields.count("vocab_size"),
            hidden_size=width,
            intermediate_size=fields.count("intermediate_size"),
            num_layers=layers,
            num_heads=heads,
            num_kv_heads=fields.count("num_key_value_heads", heads),
            head_dim=fields.count("head_dim", width // heads),
            family=model_type,
            norm_eps=fields.number("rms_norm_eps", 1e-6),
            rope=read_rope(fields, family, positions),
            max_positions=positions,
            sliding_window=window,
            unwindowed_layers=unwindowed,
            attention_bias=fields.flag("attention_bias"),
            mlp_bias=fields.flag("mlp_bias"),
            tie_embeddings=fields.flag("tie_word_embeddings"),
            eos_token_ids=fields.token_ids("eos_token_id"),
            defaults=fields.model_defaults(),
        )

    def to_hf_config(self) -> dict[str, Any]:
        """The config.json that `transformers` loads this decoder from."""
        config = {
            "architectures": [self.traits.architecture],
            "model_type": self.family,
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_layers,
            "num_attention_heads": self.num_heads,
            "num_key_value_heads": self.num_kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "rms_norm_eps": self.norm_eps,
            **write_rope(self.rope, self.family, self.max_positions),
            "max_position_embeddings": self.max_positions,
            "tie_word_embeddings": self.tie_embeddings,
            "eos_token_id": list(self.eos_token_ids),
            # Where it is absent, Phi-3 takes one that may lie outside the vocabulary.
            "pad_token_id": None,
            "dtype": "float32",
            # Other programs ignore this key; ours reads the model's own prompt form from it.
            "robust_jax": self.defaults._asdict(),
        }
        windowed = [layer not in self.unwindowed_layers for layer in range(self.num_layers)]
        has_window = self.sliding_window is not None
        family_options = {
            "attention_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias,
            "sliding_window": self.sliding_window,
            "use_sliding_window": has_window,
            "max_window_layers": windowed.index(True) if has_window and any(windowed) else self.num_layers,
            "layer_types": [SLIDING if has_window and on else FULL for on in windowed],
        }
        return config | {key: value for key, value in family_options.items() if key in self.traits.reads}


def read_config(directory: Path) -> DecoderConfig:
    """The configuration of a checkpoint directory, with the stop ids that its generation_config.json adds.

    Raises:
        InputError: config.json is missing, is not JSON, or asks for something unsupported.
    """
    path = directory / "config.json"
    if not path.is_file():
        raise InputError(f"{directory} is not a checkpoint: it has no config.json")
    raw = _read_object(path)
    generation = directory / "generation_config.json"
    if generation.exists() and (more := _read_object(generation).get("eos_token_id")) is not None:
        ids = _as_list(raw.get("eos_token_id"))
        raw["eos_token_id"] = [*ids, *(token for token in _as_list(more) if token not in ids)]
    return DecoderConfig.from_hf_config(raw, where=str(path))


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path} is not a JSON object")
    return value


def _as_list(ids: Any) -> list[Any]:
    return ids if isinstance(ids, list) else [] if ids is None else [ids]
