"""Replies with features per second: this engine against transformers and llama.cpp, on the same prompts and weights.

    python benchmarks/generation.py --model pip:smollm2 --rounds 3

64 five-shot prompts, greedy, up to 64 new tokens, fp32. Every system's text is compared with ours. The systems take
turns within each round, so that what else the machine does falls on all of them; medians and ratios are printed.

- ours: text, mean hidden state of one layer, token statistics;
- a: `transformers.generate`, left-padded batches, hidden states and logits kept, then the same features from them;
- b: `transformers.generate` for the text alone, then a second forward pass over prompt and reply for the features;
- c: llama.cpp's server with the same weights as an F32 GGUF file, text alone. It needs llama-cpp-python[server], which
  may live in an environment of its own: `--llama-python PATH`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import torch
import transformers
from flax import nnx

from robust_jax.models import generation, load_model
from robust_jax.models.checkpoint import save_decoder
from robust_jax.models.generation import shared_prefix
from robust_jax.models.local import LocalModel
from robust_jax.problems import PromptForm, build_prompt, load_suite
from robust_jax.randomness import rng
from robust_jax.types import FeatureRequest, Sampling

NEW_TOKENS = 64


def prompts(count: int, shots: int) -> list:
    """Prompts of one suite that share their worked examples, as in a search."""
    suite = load_suite("grade_school")
    templates = [suite.templates[index % len(suite.templates)] for index in range(count)]
    texts = [template.text(template.random(rng(0, "benchmark", index))) for index, template in enumerate(templates)]
    return [build_prompt(suite, text, shots=shots, form=PromptForm(shots_as="turns")) for text in texts]


class Transformers:
    """The same weights in transformers, asked in left-padded batches."""

    def __init__(self, model: LocalModel, ids: list[list[int]], layer: int, batch: int):
        with tempfile.TemporaryDirectory() as directory:
            save_decoder(model.decoder, Path(directory))
            self.model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        self.eos = list(model.decoder.config.eos_token_ids)
        self.ids, self.layer, self.batch = ids, layer, batch
        self.order = sorted(range(len(ids)), key=lambda index: len(ids[index]))

    def _batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for start in range(0, len(self.ids), self.batch):
            rows = [self.ids[index] for index in self.order[start : start + self.batch]]
            longest = max(map(len, rows))
            tokens = torch.tensor([[self.eos[0]] * (longest - len(row)) + row for row in rows])
            mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
            yield tokens, mask

    def _generate(
        self, tokens: torch.Tensor, mask: torch.Tensor, **kept: bool
    ) -> transformers.generation.GenerateDecoderOnlyOutput:
        return self.model.generate(
            input_ids=tokens,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            pad_token_id=self.eos[0],
            eos_token_id=self.eos,
            return_dict_in_generate=True,
            **kept,
        )

    def _replies(self, sequences: torch.Tensor) -> list[list[int]]:
        return [
            next(([*row[:end]] for end, token in enumerate(row) if token in self.eos), row)
            for row in sequences.tolist()
        ]

    def _in_order(self, found: list) -> list:
        ordered = [None] * len(found)
        for place, index in enumerate(self.order):
            ordered[index] = found[place]
        return ordered

    @torch.no_grad()
    def single_pass(self) -> list[tuple[list[int], np.ndarray, np.ndarray]]:
        found = []
        for tokens, mask in self._batches():
            output = self._generate(tokens, mask, output_hidden_states=True, output_logits=True)
            replies = self._replies(output.sequences[:, tokens.shape[1] :])
            # The state at a reply token is that of the step which fed it: one step later than its logits.
            states = torch.stack([step[self.layer][:, -1] for step in output.hidden_states[1:]], dim=1)
            statistics = _statistics(torch.stack(output.logits, dim=1), output.sequences[:, tokens.shape[1] :])
            for row, reply in enumerate(replies):
                # generate never feeds the last of `max_new_tokens`, so its state is missing from the mean.
                found.append(
                    (reply, states[row, : len(reply)].mean(0).numpy(), statistics[row, : len(reply)].mean(0).numpy())
                )
        return self._in_order(found)

    @torch.no_grad()
    def two_passes(self) -> list[tuple[list[int], np.ndarray, np.ndarray]]:
        found = []
        for tokens, mask in self._batches():
            sequences = self._generate(tokens, mask).sequences
            start = tokens.shape[1]
            replies = self._replies(sequences[:, start:])
            whole_mask = torch.cat([mask, torch.ones_like(sequences[:, start:])], dim=1)
            positions = (whole_mask.cumsum(1) - 1).clamp(min=0)
            output = self.model(
                sequences,
                attention_mask=whole_mask,
                position_ids=positions,
                output_hidden_states=True,
                logits_to_keep=sequences.shape[1] - start + 1,
            )
            statistics = _statistics(output.logits[:, :-1], sequences[:, start:])
            for row, reply in enumerate(replies):
                states = output.hidden_states[self.layer][row, start : start + len(reply)]
                found.append((reply, states.mean(0).numpy(), statistics[row, : len(reply)].mean(0).numpy()))
        return self._in_order(found)


def _statistics(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    log_probabilities = torch.log_softmax(logits, dim=-1)
    chosen = log_probabilities.gather(-1, tokens[..., None])[..., 0]
    entropy = -(log_probabilities.exp() * log_probabilities).sum(-1)
    certainty = -(log_probabilities.topk(50, dim=-1).values.mean(-1) + np.log(50))
    return torch.stack([chosen, entropy, certainty], dim=-1)


@contextmanager
def llama_server(python: str, gguf: Path) -> Iterator[str]:
    """The address of a running llama.cpp server."""
    port = 8471
    command = [
        python,
        "-m",
        "llama_cpp.server",
        "--model",
        str(gguf),
        "--port",
        str(port),
        "--n_ctx",
        "2048",
        "--n_threads",
        str(os.cpu_count()),
        "--n_threads_batch",
        str(os.cpu_count()),
        "--verbose",
        "false",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/v1/completions"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=1)
                break
            except OSError:
                time.sleep(1)
        yield address
    finally:
        server.kill()


def ask_server(address: str, texts: list[str]) -> list[str]:
    """One prompt after another: the server reuses the prefix that a prompt shares with the one before."""
    replies = []
    for prompt in texts:
        settings = {"prompt": prompt, "max_tokens": NEW_TOKENS, "temperature": 0.0, "repeat_penalty": 1.0}
        body = json.dumps(settings).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            replies.append(json.load(reply)["choices"][0]["text"])
    return replies


def matrix_product_ceiling(width: int = 1536, seconds: float = 2.0) -> float:
    """GFLOP/s of large fp32 matrix products in JAX, the best of some."""
    a = jnp.ones((width, width))
    product = jax.jit(jnp.matmul)
    product(a, a).block_until_ready()
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        product(a, a).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return 2 * width**3 / best / 1e9


def needed_gflop(model: LocalModel, ids: list[list[int]], replies: list[tuple[int, ...]]) -> tuple[float, float, float]:
    """What the job costs in matrix products of weights if nothing is computed twice: prefix, prompts, replies."""
    config = model.decoder.config
    per_layer = sum(
        leaf.size for leaf in jax.tree.leaves(nnx.state(model.decoder.layers[0], nnx.Param)) if leaf.ndim == 2
    )
    body, head = 2 * per_layer * config.num_layers, 2 * config.vocab_size * config.hidden_size
    common = shared_prefix(ids)
    own = sum(len(prompt) - common for prompt in ids)
    written = sum(map(len, replies))
    return common * body / 1e9, (own * body + len(ids) * head) / 1e9, written * (body + head) / 1e9


class Phase(NamedTuple):
    """What one of the engine's functions cost."""

    seconds: float
    tokens: int
    """That went through the decoder, padding and finished rows included."""


def phases(model: LocalModel, respond: Callable[[], object]) -> dict[str, Phase]:
    """Where the engine's time goes, with every function waited for."""
    spent = dict.fromkeys(("prefix", "prompts", "replies", "sums of features"), Phase(0.0, 0))

    def watched(name: str, function: Callable, tokens: Callable) -> Callable:
        def call(*arguments: object, **options: object) -> object:
            start = time.perf_counter()
            result = jax.block_until_ready(function(*arguments, **options))
            seconds, before = time.perf_counter() - start, spent[name]
            spent[name] = Phase(before.seconds + seconds, before.tokens + tokens(arguments, result))
            return result

        return call

    with ExitStack() as stack:
        for name, function, tokens in (
            ("prefix", "read_prefix", lambda given, result: given[1].size),
            ("prompts", "read_prompts", lambda given, result: given[4].tokens.size),
            (
                "replies",
                "decode_chunk",
                lambda given, result: int(result[1].is_written.any(1).sum()) * len(given[1].token),
            ),
            ("sums of features", "keep_states", lambda given, result: 0),
        ):
            original = getattr(generation, function)
            stack.enter_context(patch.object(generation, function, watched(name, original, tokens)))
        respond()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="pip:smollm2")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--shots", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--transformers-batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", default="ours,a,b,c")
    parser.add_argument("--gguf", type=Path, help="the same weights as an F32 GGUF file, for llama.cpp")
    parser.add_argument("--llama-python", default=sys.executable)
    options = parser.parse_args()
    chosen = options.systems.split(",")

    model = load_model(options.model, batch_size=options.batch_size)
    assert isinstance(model, LocalModel)
    asked = prompts(options.prompts, options.shots)
    ids = model.tokenizer.encode_prompts(asked)
    layer = round(2 * model.num_layers / 3)
    features, sampling = FeatureRequest((layer,), statistics=True), Sampling(max_tokens=NEW_TOKENS)

    systems: dict[str, Callable[[], list]] = {"ours": lambda: model.respond(asked, sampling, features)}
    if {"a", "b"} & set(chosen):
        reference = Transformers(model, ids, layer, options.transformers_batch)
        systems |= {"a": reference.single_pass, "b": reference.two_passes}
    with llama_server(options.llama_python, options.gguf) if "c" in chosen else _nothing() as address:
        texts = [model.tokenizer.prompt_text(prompt) for prompt in asked]
        systems["c"] = lambda: ask_server(address, texts)
        start = time.perf_counter()
        ours = systems["ours"]()
        print(f"compilation and first run: {time.perf_counter() - start:.1f} s", flush=True)
        seconds: dict[str, list[float]] = {name: [] for name in chosen}
        for number in range(options.rounds):
            for name in chosen:
                start = time.perf_counter()
                replies = systems[name]()
                seconds[name].append(time.perf_counter() - start)
                print(f"round {number + 1} {name}: {seconds[name][-1]:.1f} s", flush=True)
                if number == 0 and name != "ours":
                    _compare(name, model, ours, replies)

    parts = needed_gflop(model, ids, [reply.token_ids for reply in ours])
    ceiling = matrix_product_ceiling()
    for name, phase in phases(model, systems["ours"]).items():
        print(f"{name}: {phase.seconds:.1f} s for {phase.tokens} tokens, padding and finished rows included")
    written = sum(len(reply.token_ids) for reply in ours)
    print(
        f"{len(ids)} prompts of {min(map(len, ids))}-{max(map(len, ids))} tokens, {shared_prefix(ids)} shared; "
        f"{written} tokens written"
    )
    print(
        f"weights' products: prefix {parts[0]:.0f}, prompts {parts[1]:.0f}, replies {parts[2]:.0f} GFLOP; at the "
        f"machine's {ceiling:.0f} GFLOP/s that takes {sum(parts) / ceiling:.1f} s"
    )
    best = median(seconds["ours"])
    for name in chosen:
        taken = median(seconds[name])
        print(f"{name:5} {taken:7.1f} s  {len(ids) / taken:6.2f} replies/s  ours is {taken / best:.2f} times as fast")


@contextmanager
def _nothing() -> Iterator[str]:
    yield ""


def _compare(name: str, model: LocalModel, ours: list, theirs: list) -> None:
    if name == "c":
        same = sum(reply.text.strip() == text.strip() for reply, text in zip(ours, theirs, strict=True))
        print(f"{name}: same text for {same} of {len(ours)}", flush=True)
        return
    pairs = [(mine, reply) for mine, reply in zip(ours, theirs, strict=True) if list(mine.token_ids) == reply[0]]
    whole = [(mine, reply) for mine, reply in pairs if mine.token_ids and len(mine.token_ids) < NEW_TOKENS]
    hidden = max(np.abs(mine.hidden[0] - reply[1]).max() for mine, reply in whole)
    statistics = max(np.abs(np.array(mine.statistics) - reply[2]).max() for mine, reply in whole)
    print(
        f"{name}: same tokens for {len(pairs)} of {len(ours)}; where a reply ends by itself hidden states differ "
        f"by at most {hidden:.1e}, statistics by {statistics:.1e}",
        flush=True,
    )


if __name__ == "__main__":
    main()
