"""Generation on an accelerator: tokens a second, share of the device's peak, and what the features cost.

    python benchmarks/accelerator.py --shape llama-3.2-3b --batch-size 256

Random weights of the right shape in bfloat16, random prompts that share a prefix, no stop token, so that every reply
has its full length and the work is known exactly. The three levels of features take turns; medians are printed.
"""

import argparse
import time
from dataclasses import replace
from statistics import median

import jax
import numpy as np

from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder
from robust_jax.models.generation import Generator
from robust_jax.types import FeatureRequest, Sampling

SHAPES = {
    "tiny": DecoderConfig(512, 64, 128, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=16),
    "llama-3.2-1b": DecoderConfig(128_256, 2048, 8192, num_layers=16, num_heads=32, num_kv_heads=8, head_dim=64),
    "llama-3.2-3b": DecoderConfig(128_256, 3072, 8192, num_layers=28, num_heads=24, num_kv_heads=8, head_dim=128),
    "llama-3.1-8b": DecoderConfig(128_256, 4096, 14_336, num_layers=32, num_heads=32, num_kv_heads=8, head_dim=128),
}

PEAKS = {"H100": (989e12, 3.35e12), "H200": (989e12, 4.8e12), "A100": (312e12, 2.04e12)}
"""Dense bfloat16 FLOP/s and bytes/s of memory, by a part of the device's name."""


def random_decoder(shape: str, dtype: str) -> Decoder:
    """Weights are drawn on the device, so nothing passes through the host."""
    config = replace(SHAPES[shape], tie_embeddings=True, max_positions=8192)

    @jax.jit
    def draw() -> Decoder:
        return jax.tree.map(lambda weight: weight.astype(dtype), Decoder(config, key=jax.random.key(0)))

    return draw()


def random_prompts(count: int, shared: int, own: int, vocab_size: int) -> list[list[int]]:
    draws = np.random.default_rng(0)
    prefix = draws.integers(0, vocab_size, shared).tolist()
    return [prefix + draws.integers(0, vocab_size, draws.integers(own // 2, own + 1)).tolist() for _ in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="llama-3.2-3b")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--prompts", type=int, default=512)
    parser.add_argument("--shared", type=int, default=512)
    parser.add_argument("--own", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    device = jax.devices()[0]
    decoder = jax.block_until_ready(random_decoder(options.shape, options.dtype))
    config = decoder.config
    parameters = sum(leaf.size for leaf in jax.tree.leaves(decoder))
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(decoder))
    print(f"{device.device_kind}: {options.shape}, {parameters:,} parameters, {size / 2**30:.1f} GiB {options.dtype}")

    generator = Generator(decoder, options.batch_size)
    prompts = random_prompts(options.prompts, options.shared, options.own, config.vocab_size)
    samplings = [Sampling(max_tokens=options.new_tokens)] * len(prompts)
    third = round(2 * config.num_layers / 3)
    levels = {
        "text alone": FeatureRequest(),
        "one layer and token statistics": FeatureRequest((third,), statistics=True),
        "every layer and token statistics": FeatureRequest(tuple(range(1, config.num_layers + 1)), statistics=True),
    }
    seconds: dict[str, list[float]] = {name: [] for name in levels}
    for round_number in range(options.rounds + 1):
        for name, features in levels.items():
            start = time.perf_counter()
            replies = generator(prompts, samplings, features)
            taken = time.perf_counter() - start
            if round_number == 0:
                print(f"{name}: {taken:.1f} s with compilation", flush=True)
            else:
                seconds[name].append(taken)

    written = sum(len(reply.token_ids) for reply in replies)
    read = options.shared + sum(len(prompt) - options.shared for prompt in prompts)
    # A product with a [out, in] weight costs 2 · out · in a token; the embedding serves the written tokens' logits.
    body = 2 * (parameters - config.vocab_size * config.hidden_size)
    work = body * (read + written) + 2 * config.vocab_size * config.hidden_size * (written + len(prompts))
    steps = options.new_tokens * len(prompts) / options.batch_size
    peak = next((peak for name, peak in PEAKS.items() if name in device.device_kind), None)
    baseline = median(seconds["text alone"])
    for name, of_rounds in seconds.items():
        middle = median(of_rounds)
        share = ""
        if peak:
            share = (
                f", {work / middle / peak[0]:.1%} of peak FLOP/s, {size * steps / middle / peak[1]:.1%} of peak bytes/s"
            )
        print(
            f"{name:34} {middle:7.2f} s  {written / middle:9,.0f} tokens/s  {middle / baseline:.2f} × text alone{share}"
        )


if __name__ == "__main__":
    main()
