"""What is learnt, token by token: the solution and the stop token, whatever the tokenizer and its template are like."""

import json
from pathlib import Path

import pytest

from robust_jax.errors import InputError
from robust_jax.finetune.problem import Problem
from robust_jax.finetune.rows import make_rows
from robust_jax.models.config import DecoderConfig
from robust_jax.models.sources import open_checkpoint
from robust_jax.models.tokenizer import TextTokenizer, load_tokenizer
from robust_jax.problems import PromptForm, build_prompt, load_suite
from robust_jax.randomness import rng
from tests.models.byte_model import BYTES, byte_tokenizer

SUITE = load_suite("grade_school")
USUAL = PromptForm()
CHAT = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ '</s>' if m.role == 'assistant' }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""Like most templates, it has no markers of what the assistant generates, and writes more behind a reply."""


def problems(count: int = 3) -> list[Problem]:
    drawn = []
    for template in SUITE.templates[:count]:
        variation = template.fill(template.random(rng(0, "rows", template.id)))
        drawn.append(Problem.of(variation, difficulty=1.0, was_correct=False))
    return drawn


def long_context(config: DecoderConfig = BYTES, **changes: object) -> DecoderConfig:
    return DecoderConfig(**{**vars(config), "max_positions": 100_000, **changes})


def bytes_with(directory: Path, chat_template: str | None, **settings: str) -> TextTokenizer:
    byte_tokenizer(directory, chat_template=chat_template)
    file = directory / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))
    return TextTokenizer(load_tokenizer(directory))


def test_the_built_in_model_learns_the_solution_and_its_stop_token() -> None:
    checkpoint = open_checkpoint("builtin:tiny")
    tokenizer = checkpoint.tokenizer
    rows = make_rows(problems(), SUITE, 0, USUAL, tokenizer, checkpoint.config)
    for problem, row in zip(problems(), rows, strict=True):
        assert row.prompt == tuple(tokenizer.encode_prompts([build_prompt(SUITE, problem.question, shots=0)])[0])
        assert tokenizer.decode(row.reply[:-1]) == f" {problem.trace}"
        assert row.reply[-1] in checkpoint.config.eos_token_ids
        assert not set(checkpoint.config.eos_token_ids) & set(row.tokens[:-1])


@pytest.mark.parametrize("settings", [{}, {"pad_token": "</s>"}], ids=["no padding token", "padding is the stop token"])
@pytest.mark.parametrize("template", [None, CHAT], ids=["plain text", "a chat template without markers"])
@pytest.mark.parametrize("shots", [0, 2])
def test_targets_are_the_solution_and_one_stop_token(
    tmp_path: Path, template: str | None, settings: dict[str, str], shots: int
) -> None:
    tokenizer = bytes_with(tmp_path, template, **settings)
    rows = make_rows(problems(), SUITE, shots, USUAL, tokenizer, long_context())
    for problem, row in zip(problems(), rows, strict=True):
        prompt = build_prompt(SUITE, problem.question, shots=shots)
        # A byte is a token, so the text says which token belongs to what.
        written = [ord(" "), *problem.trace.encode()] if template is None else [*problem.trace.encode()]
        assert tokenizer.decode(row.reply[:-1]).encode() == bytes(written)
        assert len(row.reply) == len(written) + 1 and row.reply[-1] == 1
        whole = tokenizer.prompt_text(prompt)
        assert tokenizer.decode(row.prompt) == whole.replace("<s>", "")
        assert row.prompt.count(0) == 1, "one BOS"


@pytest.mark.parametrize(
    "form",
    [PromptForm("turns"), PromptForm(system="Be exact."), PromptForm(chat=False)],
    ids=["turns", "system", "off"],
)
def test_prompts_take_the_form_that_the_model_is_evaluated_with(tmp_path: Path, form: PromptForm) -> None:
    tokenizer = bytes_with(tmp_path, CHAT)
    rows = make_rows(problems(), SUITE, 2, form, tokenizer, long_context())
    for problem, row in zip(problems(), rows, strict=True):
        prompt = build_prompt(SUITE, problem.question, shots=2, form=form)
        assert row.prompt == tuple(tokenizer.encode_prompts([prompt])[0])
        # Behind the plain form's "Answer:" a reply begins with a space; behind a chat template it does not.
        assert tokenizer.decode(row.reply[:-1]) == ("" if form.chat else " ") + problem.trace


def test_of_several_stop_tokens_a_template_says_which(tmp_path: Path) -> None:
    # <s> counts as a stop token of the model here; the template ends a reply with it.
    ending = CHAT.replace("'</s>'", "'<s>'")
    tokenizer = bytes_with(tmp_path, ending)
    rows = make_rows(problems(), SUITE, 0, USUAL, tokenizer, long_context(eos_token_ids=(1, 0)))
    assert {row.reply[-1] for row in rows} == {0}
    (tmp_path / "plain").mkdir()
    plain = bytes_with(tmp_path / "plain", None)
    rows = make_rows(problems(), SUITE, 0, USUAL, plain, long_context(eos_token_ids=(0, 1)))
    assert {row.reply[-1] for row in rows} == {1}


def test_a_model_that_never_stops_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names no stop token"):
        make_rows(problems(), SUITE, 0, USUAL, bytes_with(tmp_path, None), long_context(eos_token_ids=()))
    (tmp_path / "chat").mkdir()
    endless = bytes_with(tmp_path / "chat", CHAT.replace("'</s>'", "''"))
    with pytest.raises(InputError, match="none of the model's stop tokens"):
        make_rows(problems(), SUITE, 0, USUAL, endless, long_context())


def test_a_sequence_longer_than_the_context_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"template \w+: prompt and solution take \d+ tokens.*context is 64"):
        make_rows(problems(), SUITE, 0, USUAL, bytes_with(tmp_path, None), long_context(max_positions=64))
