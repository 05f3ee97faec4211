"""The loss and one update against torch and transformers."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from transformers import AutoModelForCausalLM

from robust_jax.finetune.step import Batch, TrainState, adamw, loss, train_step
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


def rows() -> Batch:
    generator = np.random.default_rng(0)
    is_target = np.zeros((3, 12), bool)
    for row, (begin, end) in enumerate([(4, 9), (2, 12), (7, 8)]):
        is_target[row, begin:end] = True
    return Batch(jnp.asarray(generator.integers(2, 53, (3, 12)), jnp.int32), jnp.asarray(is_target))


def test_loss_and_gradients_equal_those_of_torch(tmp_path: Path) -> None:
    decoder, batch = Decoder(CONFIG, key=jax.random.key(0)), rows()
    save_decoder(decoder, tmp_path)
    reference = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    labels = np.where(batch.is_target, batch.tokens, -100)
    expected = reference(
        torch.tensor(np.asarray(batch.tokens), dtype=torch.long), labels=torch.tensor(labels, dtype=torch.long)
    ).loss
    expected.backward()
    value, gradients = jax.value_and_grad(loss)(decoder, batch)
    np.testing.assert_allclose(value, expected.item(), rtol=1e-5)
    pairs = [
        (gradients.embed_tokens[...], reference.model.embed_tokens.weight),
        (gradients.norm.weight[...], reference.model.norm.weight),
    ]
    for ours, theirs in zip(gradients.layers, reference.model.layers, strict=True):
        pairs += [
            (ours.self_attn.k_proj.weight[...], theirs.self_attn.k_proj.weight),
            (ours.mlp.down_proj.weight[...], theirs.mlp.down_proj.weight),
            (ours.input_layernorm.weight[...], theirs.input_layernorm.weight),
        ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_what_is_no_target_does_not_count() -> None:
    decoder, batch = Decoder(CONFIG, key=jax.random.key(0)), rows()
    changed = batch.tokens.at[0, 9:].set(5).at[2, 8:].set(7)
    np.testing.assert_allclose(loss(decoder, batch), loss(decoder, Batch(changed, batch.is_target)), rtol=1e-6)


def test_a_batch_without_targets_has_no_loss() -> None:
    batch = rows()
    assert loss(Decoder(CONFIG, key=jax.random.key(0)), Batch(batch.tokens, jnp.zeros_like(batch.is_target))) == 0


def test_steps_lower_the_loss_and_only_matrices_decay() -> None:
    decoder = Decoder(CONFIG, key=jax.random.key(0))
    optimizer = adamw(1e-2, 40)
    state, losses = TrainState(decoder, optimizer.init(decoder)), []
    for _ in range(40):
        state, value = train_step(state, rows(), optimizer)
        losses.append(float(value))
    assert losses[-1] < 0.2 * losses[0]

    nothing = jax.tree.map(jnp.zeros_like, decoder)
    still = adamw(1e-2, 10, warm_up=0.0)
    updates, _ = still.update(nothing, still.init(decoder), decoder)
    moved = optax.apply_updates(decoder, updates)
    np.testing.assert_array_equal(moved.norm.weight[...], decoder.norm.weight[...])
    assert np.abs(moved.embed_tokens[...]).sum() <= np.abs(decoder.embed_tokens[...]).sum()
