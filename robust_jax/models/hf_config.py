"""The pieces of a Hugging Face config.json: fields with their types, rotary settings, and what is refused by name."""

import re
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from robust_jax.errors import InputError
from robust_jax.models.families import Family
from robust_jax.models.rope import Llama3Scaling, LongRope, Rope
from robust_jax.types import ModelDefaults

UNDERSTOOD = (
    *("model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "hidden_act", "rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters"),
    *("max_position_embeddings", "original_max_position_embeddings", "tie_word_embeddings", "eos_token_id"),
    "robust_jax",
)
"""Keys that mean something in every family."""

INERT = (
    *("attention_dropout", "attn_implementation", "_attn_implementation", "_attn_implementation_autoset"),
    *("use_flash_attn", "_flash_attn_2_enabled", "chunk_size_feed_forward", "output_attentions"),
)
"""Keys that look as if they changed what is computed, and do not."""

NEUTRAL: Mapping[str, Any] = {"full_attn_mod": 1, "interpolate_factor": 1, "is_causal": True, "use_rope": True}
"""Keys with the value at which they change nothing; at false or zero they would, unlike all others."""

SUSPICIOUS = re.compile(
    "activation|alibi|attention|attn|audio|bias|chunk|clip|compress|conv|embed|expert|factor|gate|head|layer|linear|logit|lora|mask|mlp"
    "|_mod$|moe|multiplier|norm|position|quant|residual|rope|rotary|scal|softcap|sparse|ssm|vision|window"
)
"""An unknown key with such a name may change what is computed: it is refused unless it is off."""

ROPE_KEYS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor", "factor", "attention_factor"),
}
"""Types of rotary scaling with the settings of each."""


FULL, SLIDING = "full_attention", "sliding_attention"
"""Kinds of layers."""


class Fields:
    """The values of a config.json, read by type.

    Every method raises InputError, naming the key, where a value is missing or of another type.
    """

    def __init__(self, values: Mapping[str, Any], place: str = ""):
        """Read from `values`; `place` begins the messages about them."""
        self.values, self.place = values, place

    def refuse(self, key: str, wanted: str) -> NoReturn:
        what = f"{key}={self.values[key]!r} is not {wanted}" if key in self.values else f"{key} is missing"
        raise InputError(self.place + what)

    def count(self, key: str, default: int | None = None, least: int = 1) -> int:
        """A whole number; null and absent mean `default`."""
        value = self.values.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.refuse(key, f"a whole number from {least} on")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A positive number; null and absent mean `default`."""
        value = self.values.get(key)
        value = default if value is None else value
        if value is None or not _is_positive(value):
            self.refuse(key, "a positive number")
        return float(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        values = self.values.get(key)
        if not isinstance(values, list) or not all(map(_is_positive, values)):
            self.refuse(key, "a list of positive numbers")
        return tuple(map(float, values))

    def flag(self, key: str) -> bool:
        value = self.values.get(key) or False
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def token_ids(self, key: str) -> tuple[int, ...]:
        value = self.values.get(key)
        ids = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(token, int) for token in ids):
            self.refuse(key, "a token id or a list of them")
        return tuple(ids)

    def model_defaults(self) -> ModelDefaults:
        given = self.values.get("robust_jax") or {}
        if not isinstance(given, dict) or not given.keys() <= set(ModelDefaults._fields):
            self.refuse("robust_jax", f"an object of {', '.join(ModelDefaults._fields)}")
        return ModelDefaults(**{key: Fields(given).count(key, least=0) for key in given if given[key] is not None})

    def window(self, family: Family, num_layers: int) -> tuple[int | None, tuple[int, ...]]:
        """The sliding window, if any layer has one, and the layers that have none all the same."""
        if "sliding_window" not in family.reads:
            return None, ()
        if "use_sliding_window" not in family.reads:
            return (None if self.values["sliding_window"] is None else self.count("sliding_window")), ()
        is_on = self.flag("use_sliding_window") and self.values["sliding_window"] is not None
        kinds = self.values.get("layer_types")
        if kinds is None:
            first = self.count("max_window_layers", least=0) if is_on else num_layers
            kinds = [FULL if layer < first else SLIDING for layer in range(num_layers)]
        if (
            not isinstance(kinds, list)
            or len(kinds) != num_layers
            or any(kind not in (FULL, SLIDING) for kind in kinds)
        ):
            self.refuse("layer_types", f"a list of {num_layers} times {FULL!r} or {SLIDING!r}")
        if SLIDING not in kinds:
            return None, ()
        if not is_on:
            self.refuse("layer_types", "possible without use_sliding_window and sliding_window")
        return self.count("sliding_window"), tuple(layer for layer, kind in enumerate(kinds) if kind == FULL)


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= sys.float_info.max


def refuse_unsupported(config: Mapping[str, Any], family: Family) -> None:
    """Refuse, by name, what the decoder does not do.

    Raises:
        InputError: all such keys.
    """
    if config.get("quantization_config"):
        raise InputError("quantised weights (quantization_config) are not supported; load the original checkpoint")
    if (activation := config.get("hidden_act", "silu")) != "silu":
        raise InputError(f"hidden_act={activation!r} is not supported; supported: 'silu'")
    known = {*UNDERSTOOD, *INERT, *family.reads}
    refused = [f"{key}={value!r}" for key, value in config.items() if key not in known and _may_matter(key, value)]
    if refused:
        raise InputError(f"not supported in a {config['model_type']} model: {', '.join(refused)}")


def _may_matter(key: str, value: Any) -> bool:
    if key in NEUTRAL:
        return value is not None and value != NEUTRAL[key]
    return bool(value) and SUSPICIOUS.search(key) is not None


def read_rope(fields: Fields, family: Family, max_positions: int) -> Rope:
    """Rotary settings in the old spelling (rope_theta, rope_scaling) or that of transformers 5 (rope_parameters).

    Raises:
        InputError: a type or a setting that is not supported.
    """
    values = fields.values
    settings = values.get("rope_scaling") or values.get("rope_parameters") or {}
    if not isinstance(settings, dict):
        raise InputError(f"rope settings {settings!r} are not an object")
    kind = settings.get("rope_type", settings.get("type", "default"))
    if fields.values["model_type"] == "phi3" and kind in ("su", "yarn"):
        kind = "longrope"  # Early Phi-3 checkpoints name it so.
    if kind not in family.rope_types:
        raise InputError(f"rope type {kind!r} is not supported; supported: {', '.join(family.rope_types)}")
    common = ("rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings")
    if unknown := [key for key in settings if key not in (*common, *ROPE_KEYS[kind]) and settings[key] is not None]:
        raise InputError(f"rope settings not supported with type {kind!r}: {', '.join(unknown)}")
    # What the file says of itself comes before what it says of its rotary positions, as in transformers.
    outer = {key: values[key] for key in common if values.get(key) is not None}
    inner = Fields({**outer, **settings}, f"rope type {kind}: ")
    fraction = inner.number("partial_rotary_factor", 1.0)
    if fraction != 1.0 and "partial_rotary_factor" not in family.reads:
        raise InputError(f"partial_rotary_factor={fraction} is not supported in a {values['model_type']} model")
    original = Fields({**settings, **outer}).count("original_max_position_embeddings", max_positions, least=2)
    return Rope(inner.number("rope_theta", 10_000.0), fraction, _read_scaling(kind, inner, original, max_positions))


def _read_scaling(kind: str, fields: Fields, original: int, max_positions: int) -> Llama3Scaling | LongRope | None:
    if kind == "llama3":
        return Llama3Scaling(
            fields.number("factor"), fields.number("low_freq_factor"), fields.number("high_freq_factor"), original
        )
    if kind == "longrope":
        usual = LongRope.usual_attention_factor(fields.number("factor", max_positions / original), original)
        return LongRope(
            fields.numbers("short_factor"),
            fields.numbers("long_factor"),
            original,
            fields.number("attention_factor", usual),
        )
    return None


def write_rope(rope: Rope, model_type: str, max_positions: int) -> dict[str, Any]:
    """Rotary settings in the old spelling, which every version of `transformers` reads."""
    written: dict[str, Any] = {"rope_theta": rope.theta, "rope_scaling": None}
    if rope.fraction != 1.0:
        written["partial_rotary_factor"] = rope.fraction
    match rope.scaling:
        case Llama3Scaling(factor, low, high, original):
            written["rope_scaling"] = {
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": low,
                "high_freq_factor": high,
                "original_max_position_embeddings": original,
            }
        case LongRope(short, long, original, attention_factor):
            scaling: dict[str, Any] = {"type": "longrope", "short_factor": list(short), "long_factor": list(long)}
            if attention_factor != LongRope.usual_attention_factor(max_positions / original, original):
                scaling["attention_factor"] = attention_factor
            # Phi-3 keeps it outside, and older versions of transformers suffer nothing else inside.
            (written if model_type == "phi3" else scaling)["original_max_position_embeddings"] = original
            written["rope_scaling"] = scaling
    return written
