"""Training tokens per second: this loop against transformers with torch, on the same weights, rows and precision.

    python benchmarks/finetune.py --model pip:smollm2 --steps 6
    python benchmarks/finetune.py --shape llama-3.2-1b --compute bfloat16 --against none     # on a GPU

A step is what a step of fine-tuning is in either: forward, backward, clipping, AdamW. The rows are problems of a
bundled suite with their worked solutions; transformers gets them padded to the longest of the batch, with the prompt
masked out of the loss, as its own data collators do it. The two take turns step by step, so that what else the machine
does falls on both; medians, their ratio and both losses are printed. Tokens are those of the rows: padding counts for
nobody. Ours are laid out as in a run of 300 steps, of which the first are measured.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import jax
import jax.numpy as jnp
import numpy as np
from accelerator import PEAKS, SHAPES
from flax import nnx

from robust_jax.finetune.lora import TARGETS, with_adapters
from robust_jax.finetune.memory import keep_freed_memory
from robust_jax.finetune.optimizer import adamw, learning_rate
from robust_jax.finetune.packing import Costs, common_shapes, step_batch
from robust_jax.finetune.problem import Problem
from robust_jax.finetune.rows import Row, make_rows
from robust_jax.finetune.step import TrainState, compiled_step, take_apart
from robust_jax.models.checkpoint import load_decoder, save_decoder
from robust_jax.models.decoder import Decoder
from robust_jax.models.sources import open_checkpoint
from robust_jax.problems import PromptForm, load_suite
from robust_jax.randomness import rng

RATE = 1e-5
Step = Callable[[int], float]
"""Trains on the batch of that number and gives its loss."""


def problems(count: int) -> list[Problem]:
    suite = load_suite("grade_school")
    drawn = []
    for index in range(count):
        template = suite.templates[index % len(suite.templates)]
        variation = template.fill(template.random(rng(0, "benchmark", index)))
        drawn.append(Problem.of(variation, difficulty=None, was_correct=False))
    return drawn


def ours(decoder: Decoder, batches: list[list[Row]], accumulation: int, options: argparse.Namespace) -> Step:
    if options.lora_rank:
        decoder = with_adapters(decoder, options.lora_rank, 16.0, TARGETS, 0)
    parts = take_apart(decoder)
    if options.lora_rank:
        parts = parts._replace(frozen=jax.tree.map(lambda leaf: leaf.astype(options.compute), parts.frozen))
    optimizer = adamw(learning_rate(RATE, 1000, warm_up=0.0, schedule="constant"))
    state = TrainState(parts.trained, jax.jit(optimizer.init)(parts.trained))
    step = compiled_step(parts.graph, optimizer, dtype=jnp.dtype(options.compute), remat=options.remat)
    size = len(batches[0])
    micro = [range(start, start + size // accumulation) for start in range(0, size, size // accumulation)]
    steps = [[[size * number + place for place in places] for places in micro] for number in range(len(batches))]
    shapes = common_shapes([row for batch in batches for row in batch], steps, Costs.of(decoder.config))
    print("ours: micro-batches of", " or ".join(f"{lines} lines of {length} tokens" for lines, length, _ in shapes))

    def train(number: int) -> float:
        nonlocal state
        batch = step_batch([[batches[number][place] for place in places] for places in micro], shapes)
        state, report = step(state, parts.frozen, batch)
        return float(report.loss)

    return train


def theirs(decoder: Decoder, batches: list[list[Row]], accumulation: int, compute: str) -> Step:
    import torch
    from transformers import AutoModelForCausalLM

    with tempfile.TemporaryDirectory() as directory:
        save_decoder(decoder, Path(directory))
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.1)

    def train(number: int) -> float:
        rows = batches[number]
        size = len(rows) // accumulation
        targets = sum(len(row.reply) for row in rows)
        total = 0.0
        optimizer.zero_grad()
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            longest = max(len(row.tokens) for row in part)
            tokens = torch.zeros((size, longest), dtype=torch.long)
            labels, mask = torch.full_like(tokens, -100), torch.zeros_like(tokens)
            for line, row in enumerate(part):
                end = len(row.tokens)
                tokens[line, :end], mask[line, :end] = torch.tensor(row.tokens), 1
                labels[line, len(row.prompt) : end] = torch.tensor(row.reply)
            with torch.autocast("cpu", torch.bfloat16, enabled=compute == "bfloat16"):
                loss = model(tokens, attention_mask=mask, labels=labels, num_items_in_batch=targets).loss
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return total

    return train


def random_decoder(shape: str) -> Decoder:
    """Random weights, drawn on the device."""
    config = replace(SHAPES[shape], tie_embeddings=True, max_positions=8192, eos_token_ids=(1,))
    return jax.jit(lambda: Decoder(config, key=jax.random.key(0)))()


def random_rows(count: int, prompt: int, reply: int, vocabulary: int) -> list[Row]:
    """Rows whose lengths spread by half about the given ones."""
    draws = np.random.default_rng(0)

    def tokens(length: int) -> tuple[int, ...]:
        size = int(draws.integers(length // 2, 3 * length // 2 + 1))
        return tuple(draws.integers(0, vocabulary, size).tolist())

    return [Row(tokens(prompt), tokens(reply)) for _ in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="builtin:tiny", help="weights and tokenizer")
    parser.add_argument("--shape", choices=SHAPES, help="random weights and rows of this shape instead")
    parser.add_argument("--compute", default="float32")
    parser.add_argument("--lora-rank", type=int, default=0)
    parser.add_argument("--remat", action="store_true")
    parser.add_argument("--batch", type=int, default=16, help="rows of a micro-batch")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--shots", type=int, default=0)
    parser.add_argument("--prompt", type=int, default=600, help="with --shape: tokens of a prompt")
    parser.add_argument("--reply", type=int, default=150, help="with --shape: tokens of a reply")
    parser.add_argument("--steps", type=int, default=10, help="measured, after one that compiles")
    parser.add_argument("--run", type=int, default=300, help="steps of the run whose first ones are measured")
    parser.add_argument("--against", choices=["transformers", "none"], default="transformers")
    options = parser.parse_args()
    keep_freed_memory()

    count = options.batch * options.accumulation * options.run
    if options.shape:
        decoder = random_decoder(options.shape)
        rows = random_rows(count, options.prompt, options.reply, decoder.config.vocab_size)
    else:
        checkpoint = open_checkpoint(options.model)
        decoder = load_decoder(checkpoint.config, checkpoint.tensors)
        suite = load_suite("grade_school")
        rows = make_rows(problems(count), suite, options.shots, PromptForm(), checkpoint.tokenizer, checkpoint.config)
    size = options.batch * options.accumulation
    batches = [rows[start : start + size] for start in range(0, count, size)]
    parameters = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(decoder)))
    print(f"{jax.devices()[0].device_kind}: {parameters:,} parameters, {options.compute}")

    systems: dict[str, Step] = {"ours": ours(decoder, batches, options.accumulation, options)}
    if options.against == "transformers":
        if options.lora_rank:
            parser.error("--lora-rank is measured alone: --against none")
        systems["transformers"] = theirs(decoder, batches, options.accumulation, options.compute)
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    losses: dict[str, list[float]] = {name: [] for name in systems}
    for name, step in systems.items():
        start = time.perf_counter()
        losses[name].append(step(0))
        print(f"{name}: first step {time.perf_counter() - start:.1f} s", flush=True)
    for number in range(1, options.steps + 1):
        for name, step in systems.items():
            start = time.perf_counter()
            losses[name].append(step(number))
            seconds[name].append(time.perf_counter() - start)

    tokens = [sum(len(row.tokens) for row in batch) for batch in batches[1 : options.steps + 1]]
    speeds = {
        name: median(count / of_step for count, of_step in zip(tokens, taken, strict=True))
        for name, taken in seconds.items()
    }
    for name, speed in speeds.items():
        peak = next((peak for part, (peak, _) in PEAKS.items() if part in jax.devices()[0].device_kind), None)
        # Forward and backward through every weight: two operations each, three times, or twice with frozen weights.
        share = f", {(4 if options.lora_rank else 6) * parameters * speed / peak:.1%} of peak FLOP/s" if peak else ""
        print(f"{name:14} {median(seconds[name]):8.3f} s a step  {speed:10,.0f} tokens/s{share}")
        print(f"{'':14} last loss {losses[name][-1]:.5f}")
    if "transformers" in speeds:
        print(f"ours / transformers: {speeds['ours'] / speeds['transformers']:.2f}")


if __name__ == "__main__":
    main()
