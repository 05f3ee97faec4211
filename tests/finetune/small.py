"""A small model, rows for it to learn, and what torch makes of them."""

from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from robust_jax.finetune.packing import Batch, Costs, Shape, common_shapes, packed
from robust_jax.finetune.rows import Row
from robust_jax.models.checkpoint import save_decoder
from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder

CONFIG = DecoderConfig(
    vocab_size=53,
    hidden_size=32,
    intermediate_size=48,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    tie_embeddings=True,
    eos_token_ids=(1,),
)
STOP = 1


def decoder(config: DecoderConfig = CONFIG, seed: int = 0) -> Decoder:
    return Decoder(config, key=jax.random.key(seed))


def rows(*sizes: tuple[int, int], seed: int = 0) -> list[Row]:
    """Rows of random tokens, given the lengths of prompt and reply."""
    generator = np.random.default_rng(seed)

    def draw(count: int) -> tuple[int, ...]:
        return tuple(generator.integers(2, 53, count).tolist())

    return [Row(draw(prompt), (*draw(reply - 1), STOP)) for prompt, reply in sizes]


ROWS = rows((4, 5), (2, 10), (7, 1), (3, 3), (1, 6))


TOKENS = Costs(token=1.0, pair=0.0, target=0.0)


def one_shape(learnt: list[Row], groups: Sequence[Sequence[int]], ways: int = 1) -> Shape:
    """A shape that holds all those micro-batches in few tokens."""
    return common_shapes(learnt, [groups], TOKENS, ways)[-1]


def alone(learnt: list[Row], lines: int = 0, length: int = 0) -> Batch:
    """One micro-batch with a line for every row, in a shape that is at least as large as asked for."""
    length = max(length, *(len(row.tokens) for row in learnt))
    shape = Shape(1, length, length)
    parts = [packed([row], shape) for row in learnt] + [packed([], shape)] * (lines - len(learnt))
    return Batch(*(jnp.asarray(np.concatenate(part))[None] for part in zip(*parts, strict=True)))


def reference(model: Decoder, directory: Path) -> PreTrainedModel:
    """The same weights in transformers."""
    save_decoder(model, directory)
    loaded: PreTrainedModel = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    return loaded


def reference_loss(model: PreTrainedModel, learnt: list[Row]) -> torch.Tensor:
    """Transformers' loss on padded rows whose prompts and padding are masked by hand: a mean over all targets."""
    longest = max(len(row.tokens) for row in learnt)
    tokens = torch.tensor([[*row.tokens, *[0] * (longest - len(row.tokens))] for row in learnt])
    labels = torch.tensor(
        [[*[-100] * len(row.prompt), *row.reply, *[-100] * (longest - len(row.tokens))] for row in learnt]
    )
    mask = torch.tensor([[1] * len(row.tokens) + [0] * (longest - len(row.tokens)) for row in learnt])
    loss: torch.Tensor = model(tokens, attention_mask=mask, labels=labels).loss
    return loss
