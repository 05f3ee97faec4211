"""The loss, its gradients and one update against torch and transformers; packing and accumulation change nothing."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.finetune.lora import TARGETS, with_adapters
from robust_jax.finetune.optimizer import adamw, learning_rate
from robust_jax.finetune.packing import Batch, Shape, packed, stacked
from robust_jax.finetune.rows import Row
from robust_jax.finetune.step import Parts, TrainState, compiled_step, gradients, put_together, take_apart
from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder
from robust_jax.models.rope import LongRope, Rope
from tests.finetune.small import CONFIG, ROWS, alone, decoder, one_shape, reference, reference_loss, rows

QWEN = DecoderConfig(**{**vars(CONFIG), "family": "qwen2", "sliding_window": 5, "unwindowed_layers": (0,)})
PHI = DecoderConfig(
    **{
        **vars(CONFIG),
        "family": "phi3",
        "tie_embeddings": False,
        "rope": Rope(scaling=LongRope((1.0, 1.1, 1.2, 1.3), (1.5, 4.0, 9.0, 20.0), 8, attention_factor=1.2)),
    }
)


compiled = jax.jit(gradients, static_argnames=("dtype", "remat"))


def as_arrays(state: nnx.State) -> dict[str, np.ndarray]:
    return {".".join(map(str, path)): np.asarray(leaf[...]) for path, leaf in nnx.to_flat_state(state)}


def assert_close(ours: nnx.State, theirs: nnx.State, tolerance: float = 1e-5, least: float = 0.0) -> None:
    """Every leaf, within its own scale; `least` is the smallest scale, as a share of the largest gradient."""
    one, other = as_arrays(ours), as_arrays(theirs)
    assert one.keys() == other.keys()
    least *= max(np.abs(values).max() for values in other.values())
    for name, values in one.items():
        scale = max(least, np.abs(other[name]).max())
        np.testing.assert_allclose(values, other[name], rtol=tolerance, atol=tolerance * scale, err_msg=name)


def one_micro_batch(learnt: list[Row]) -> Batch:
    shape = one_shape(learnt, [range(len(learnt))])
    return stacked([packed(learnt, shape)])


@pytest.mark.parametrize("config", [CONFIG, QWEN, PHI], ids=["llama", "qwen2", "phi3"])
def test_loss_and_all_gradients_equal_those_of_transformers(config: DecoderConfig, tmp_path: Path) -> None:
    # LongRoPE turns a whole batch by its longest row there, and each row by its own length here.
    learnt = ROWS if config is not PHI else [row for row in ROWS if len(row.tokens) > 8]
    model = decoder(config)
    theirs = reference(model, tmp_path)
    expected = reference_loss(theirs, learnt)
    expected.backward()
    value, gradient = compiled(take_apart(model), one_micro_batch(learnt))
    np.testing.assert_allclose(value, expected.item(), rtol=1e-5)
    found = as_arrays(gradient)
    wanted: dict[str, np.ndarray] = {}
    for name, weight in theirs.named_parameters():
        grad = weight.grad.numpy()
        name = name.removeprefix("model.")
        if "qkv_proj" in name:
            parts = np.split(grad, [32, 48])
            wanted |= {name.replace("qkv_proj", f"{x}_proj"): part for x, part in zip("qkv", parts, strict=True)}
        elif "gate_up_proj" in name:
            wanted |= {
                name.replace("gate_up", x): part for x, part in zip(("gate", "up"), np.split(grad, 2), strict=True)
            }
        else:
            wanted[name] = grad
    wanted["embed_tokens"] = wanted.pop("embed_tokens.weight")
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-4 * np.abs(values).max(), err_msg=name)


class TorchAdapter(torch.nn.Module):
    """A linear map with a low-rank map beside it, as torch computes it."""

    def __init__(self, base: torch.nn.Linear, down: np.ndarray, up: np.ndarray, scale: float):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), scale
        self.down, self.up = (torch.nn.Parameter(torch.tensor(part)) for part in (down, up))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T


def test_gradients_of_adapters_equal_those_of_torch(tmp_path: Path) -> None:
    model = decoder()
    theirs = reference(model, tmp_path)
    parts = take_apart(with_adapters(model, rank=3, alpha=6.0, targets=TARGETS, seed=0))
    # Without noise every gradient of `down` would be zero, because `up` begins at zero.
    noise = np.random.default_rng(1)
    parts = parts._replace(
        trained=jax.tree.map(lambda leaf: leaf + noise.normal(0, 0.1, leaf.shape).astype("f4"), parts.trained)
    )
    held = as_arrays(parts.trained)
    assert len(held) == 2 * 2 * len(TARGETS)
    torch_adapters = {}
    for layer, block in enumerate(theirs.model.layers):
        for module, names in ((block.self_attn, TARGETS[:4]), (block.mlp, TARGETS[4:])):
            for name in names:
                owner = "self_attn" if module is block.self_attn else "mlp"
                path = f"layers.{layer}.{owner}.{name}"
                adapter = TorchAdapter(getattr(module, name), held[f"{path}.down"], held[f"{path}.up"], 2.0)
                setattr(module, name, adapter)
                torch_adapters[path] = adapter
    expected = reference_loss(theirs, ROWS)
    expected.backward()
    value, gradient = compiled(parts, one_micro_batch(ROWS))
    np.testing.assert_allclose(value, expected.item(), rtol=1e-5)
    found = as_arrays(gradient)
    for path, adapter in torch_adapters.items():
        for part in ("down", "up"):
            wanted = getattr(adapter, part).grad.numpy()
            scale = np.abs(wanted).max()
            assert scale > 0
            np.testing.assert_allclose(found[f"{path}.{part}"], wanted, rtol=1e-4, atol=1e-4 * scale, err_msg=path)


sizes = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=7)


@settings(max_examples=12, deadline=None)
@given(sizes, st.sampled_from([QWEN, PHI]))
def test_rows_that_share_a_line_learn_what_each_learns_alone(
    lengths: list[tuple[int, int]], config: DecoderConfig
) -> None:
    learnt = rows(*lengths)
    parts = take_apart(decoder(config))
    together = stacked([packed(learnt, Shape(7, 40, 40))])
    one, other = compiled(parts, together), compiled(parts, alone(learnt, 7, 18))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-5)
    # Behind a single token the gradient of keys and queries is zero but for rounding, and has no scale of its own.
    assert_close(one[1], other[1], least=1e-2)


def test_a_row_never_sees_its_neighbour() -> None:
    learnt = rows((4, 4), (5, 3))
    shape = Shape(1, 16, 16)
    parts = take_apart(decoder())

    def losses(batch: Batch) -> float:
        # Only the row that comes second in the line is scored.
        second = batch._replace(is_target=batch.is_target & (np.arange(16) >= 4)[None])
        return float(compiled(parts, stacked([second]))[0])

    changed = [Row(tuple(52 - t for t in learnt[0].prompt), learnt[0].reply), learnt[1]]
    assert losses(packed(learnt, shape)) == losses(packed(changed, shape))


@pytest.mark.parametrize("accumulation", [2, 4])
def test_accumulated_micro_batches_are_one_large_batch(accumulation: int) -> None:
    learnt = rows(*[(2 + n % 3, 1 + n * n % 11) for n in range(8)])
    parts = take_apart(decoder())
    whole = compiled(parts, one_micro_batch(learnt))
    groups = [list(range(k, 8, accumulation)) for k in range(accumulation)]
    shape = one_shape(learnt, groups)
    split = stacked([packed([learnt[place] for place in group], shape) for group in groups])
    accumulated = compiled(parts, split)
    np.testing.assert_allclose(accumulated[0], whole[0], rtol=1e-6)
    assert_close(accumulated[1], whole[1])


def test_activations_computed_anew_change_nothing() -> None:
    parts, batch = take_apart(decoder()), one_micro_batch(ROWS)
    assert_close(compiled(parts, batch, remat=True)[1], compiled(parts, batch)[1])


def test_products_in_bfloat16_leave_weights_and_gradients_in_float32() -> None:
    parts, batch = take_apart(decoder()), one_micro_batch(ROWS)
    exact, rounded = compiled(parts, batch), compiled(parts, batch, dtype=jnp.dtype("bfloat16"))
    assert {leaf.dtype for leaf in jax.tree.leaves(rounded[1])} == {jnp.dtype("float32")}
    assert rounded[0] != exact[0]
    np.testing.assert_allclose(rounded[0], exact[0], rtol=2e-2)


def test_what_is_no_target_does_not_count() -> None:
    parts = take_apart(decoder())
    batch = packed(ROWS, Shape(3, 24, 24))
    padding = batch.sequences == 0
    assert padding.any()
    changed = batch._replace(tokens=np.where(padding, 7, batch.tokens))
    one, other = compiled(parts, stacked([batch])), compiled(parts, stacked([changed]))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-6)
    nothing = batch._replace(is_target=np.zeros_like(batch.is_target))
    assert compiled(parts, stacked([nothing]))[0] == 0


def test_updates_equal_those_of_torch(tmp_path: Path) -> None:
    model = decoder()
    theirs = reference(model, tmp_path)
    rate, steps = 1e-2, 5
    matrices = [weight for weight in theirs.parameters() if weight.ndim > 1]
    vectors = [weight for weight in theirs.parameters() if weight.ndim == 1]
    torch_optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.3}, {"params": vectors, "weight_decay": 0.0}], lr=rate, eps=1e-8
    )
    parts = take_apart(model)
    optimizer = adamw(learning_rate(rate, steps, warm_up=0.0, schedule="constant"), weight_decay=0.3, clip=0.5)
    state = TrainState(parts.trained, optimizer.init(parts.trained))
    step = compiled_step(parts.graph, optimizer)
    losses = []
    for number in range(steps):
        torch_optimizer.zero_grad()
        expected = reference_loss(theirs, ROWS)
        expected.backward()
        norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        torch_optimizer.step()
        state, report = step(state, parts.frozen, one_micro_batch(ROWS))
        np.testing.assert_allclose(report.loss, expected.item(), rtol=1e-4)
        if number == 0:
            np.testing.assert_allclose(report.gradient_norm, norm.item(), rtol=1e-5)
        losses.append(expected.item())
    assert losses[-1] < losses[0]
    trained: Decoder = put_together(Parts(parts.graph, state.trained, parts.frozen))
    wanted = theirs.model.embed_tokens.weight.detach().numpy()
    # AdamW divides a gradient by its own size, so rounding in the smallest ones is as large as a step: few weights
    # differ by parts of the way that each has come, and all others by next to nothing.
    apart = np.abs(np.asarray(trained.embed_tokens[...]) - wanted) / (rate * steps)
    assert np.median(apart) < 1e-4 and (apart > 1e-2).mean() < 0.01


def test_biases_and_norms_do_not_decay() -> None:
    parts = take_apart(decoder(QWEN))
    optimizer = adamw(learning_rate(1e-2, 10, warm_up=0.0), weight_decay=0.3)
    nothing = jax.tree.map(jnp.zeros_like, parts.trained)
    updates, _ = optimizer.update(nothing, optimizer.init(parts.trained), parts.trained)
    moved, before = as_arrays(optax.apply_updates(parts.trained, updates)), as_arrays(parts.trained)
    for name, values in before.items():
        shrunk = 1 - 1e-2 * 0.3 if values.ndim > 1 else 1.0
        np.testing.assert_allclose(moved[name], values * shrunk, rtol=1e-6, err_msg=name)
