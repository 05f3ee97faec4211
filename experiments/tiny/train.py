"""Train `builtin:tiny`: a small Llama that solves narrow value ranges of `grade_school` and is brittle outside them.

    python experiments/tiny/train.py --out robust_jax/models/tiny --work tiny-work

Stopped at any moment, the same command continues from its last checkpoint. The README beside this file has the
figures of the shipped model.
"""

import dataclasses
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import orbax.checkpoint as ocp
import tyro
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from robust_jax.finetune.optimizer import adamw, learning_rate
from robust_jax.finetune.packing import Batch, Shape, packed, stacked
from robust_jax.finetune.rows import Row
from robust_jax.finetune.step import TrainState, compiled_step, put_together, take_apart
from robust_jax.models.checkpoint import save_decoder
from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder
from robust_jax.problems import build_prompt, load_suite
from robust_jax.problems.template import SymbolicTemplate, restricted
from robust_jax.randomness import rng
from robust_jax.types import ModelDefaults, Suite, Variation

BOS, EOS, PAD = "<s>", "</s>", "<pad>"


@dataclass(frozen=True)
class Options:
    """Train the built-in model."""

    out: Path
    """Where the Hugging Face checkpoint is written."""
    work: Path
    """Where training checkpoints and the log are kept; the same folder resumes."""
    suite: str = "grade_school"
    """What it learns."""
    share: float = 0.6
    """Lower share of every numeric slot's values that it ever sees."""
    steps: int = 2400
    """Optimizer steps."""
    batch: int = 64
    """Rows a step."""
    rate: float = 3e-3
    """Peak learning rate."""
    vocabulary: int = 1024
    """Tokens."""
    width: int = 192
    """D."""
    layers: int = 4
    """L."""
    seed: int = 0
    """Of weights and data."""


def narrow(suite: Suite, share: float) -> Suite:
    """The suite with every numeric slot cut to the lower `share` of its values; words stay as they are."""
    templates = []
    for template in suite.templates:
        cut = {
            slot.name: sorted(slot.domain)[: math.ceil(share * len(slot.domain))]
            for slot in template.slots
            if slot.is_numeric
        }
        assert isinstance(template, SymbolicTemplate)
        templates.append(restricted(template, cut))
    return dataclasses.replace(suite, templates=tuple(templates))


def question_and_reply(suite: Suite, variation: Variation) -> tuple[str, str]:
    """The zero-shot prompt as the toolkit asks it, and the reply that is wanted."""
    prompt = build_prompt(suite, variation.text, shots=0)
    assert prompt.raw is not None
    return prompt.raw, " " + variation.trace


def train_tokenizer(suite: Suite, size: int, seed: int) -> Tokenizer:
    """A byte-level tokenizer (any text survives it unchanged); no token holds more than one digit."""
    generator = rng(seed, "tokenizer")
    texts = [
        "".join(question_and_reply(suite, template.fill(template.random(generator))))
        for template in suite.templates
        for _ in range(400)
    ]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r" ?\d"), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[BOS, EOS, PAD], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(texts, trainer)
    bos = tokenizer.token_to_id(BOS)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, bos)])
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, directory: Path) -> None:
    """Write tokenizer.json and the settings that `transformers` wants beside it."""
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def end_of_sequence(tokenizer: Tokenizer) -> int:
    token: int | None = tokenizer.token_to_id(EOS)
    assert token is not None, "the tokenizer was trained with it"
    return token


def batches(suite: Suite, tokenizer: Tokenizer, options: Options, start: int) -> Iterator[Batch]:
    """Training batches from step `start` on; each group of 16 depends on the seed and its number alone."""
    eos = end_of_sequence(tokenizer)
    group = 16
    for number in range(start // group, math.ceil(options.steps / group)):
        generator = rng(options.seed, "batches", number)
        templates = generator.integers(len(suite.templates), size=options.batch * group)
        pairs = []
        for index in templates:
            template = suite.templates[index]
            pairs.append(question_and_reply(suite, template.fill(template.random(generator))))
        prompts = tokenizer.encode_batch([prompt for prompt, _ in pairs])
        replies = tokenizer.encode_batch([reply for _, reply in pairs], add_special_tokens=False)
        rows = [Row(tuple(prompt.ids), (*reply.ids, eos)) for prompt, reply in zip(prompts, replies, strict=True)]
        # Rows of like length share a batch, so little is spent on padding; the batches' order is random again.
        rows.sort(key=lambda row: len(row.tokens))
        chunks = [rows[place : place + options.batch] for place in range(0, len(rows), options.batch)]
        for position, chunk in enumerate(generator.permutation(group)):
            if number * group + position < start:
                continue
            length = 16 * math.ceil(max(len(row.tokens) for row in chunks[chunk]) / 16)
            yield stacked([packed(chunks[chunk], Shape(options.batch, length, length))])


def main(options: Options) -> None:
    full = load_suite(options.suite)
    suite = narrow(full, options.share)
    tokenizer_file = options.work / "tokenizer.json"
    if not tokenizer_file.exists():
        save_tokenizer(train_tokenizer(full, options.vocabulary, options.seed), options.work)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))

    config = DecoderConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=options.width,
        intermediate_size=options.width * 8 // 3,
        num_layers=options.layers,
        num_heads=options.width // 32,
        num_kv_heads=options.width // 96,
        head_dim=32,
        max_positions=512,
        tie_embeddings=True,
        eos_token_ids=(end_of_sequence(tokenizer),),
        defaults=ModelDefaults(shots=0, max_tokens=80),
    )
    decoder = Decoder(config, key=jax.random.key(options.seed))
    parts = take_apart(decoder)
    optimizer = adamw(learning_rate(options.rate, options.steps, final=0.1), beta2=0.95)
    state = TrainState(parts.trained, optimizer.init(parts.trained))
    step = compiled_step(parts.graph, optimizer)

    leaves, structure = jax.tree.flatten(state)
    with ocp.CheckpointManager(
        options.work.absolute() / "state", options=ocp.CheckpointManagerOptions(max_to_keep=2)
    ) as manager:
        done = manager.latest_step() or 0
        if done:
            leaves = manager.restore(done, args=ocp.args.StandardRestore(leaves))
            state = jax.tree.unflatten(structure, leaves)
        began, losses = time.monotonic(), []
        with (options.work / "log.jsonl").open("a", encoding="utf-8") as log:
            for number, batch in enumerate(batches(suite, tokenizer, options, done), start=done + 1):
                state, report = step(state, parts.frozen, batch)
                losses.append(report.loss)
                if number % 50 == 0 or number == options.steps:
                    seconds = (time.monotonic() - began) / (number - done)
                    line = {
                        "step": number,
                        "loss": round(float(np.mean(jax.device_get(losses))), 4),
                        "seconds_a_step": round(seconds, 3),
                        "minutes_left": round(seconds * (options.steps - number) / 60, 1),
                    }
                    print(line, flush=True)
                    log.write(json.dumps(line) + "\n")
                    log.flush()
                    losses.clear()
                if number % 200 == 0 or number == options.steps:
                    manager.save(number, args=ocp.args.StandardSave(jax.tree.leaves(state)))
    save_decoder(put_together(parts._replace(trained=state.trained)), options.out)
    save_tokenizer(tokenizer, options.out)


if __name__ == "__main__":
    main(tyro.cli(Options))
