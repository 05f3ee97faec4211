"""How prompts become token ids: one BOS, one date, and refusals in one line."""

import json
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from robust_jax.errors import InputError
from robust_jax.models.tokenizer import TextTokenizer, load_tokenizer
from robust_jax.types import Message, Prompt
from tests.models.byte_model import byte_tokenizer

BOS = 0


def tokenizer(directory: Path, chat_template: str | None = None) -> TextTokenizer:
    byte_tokenizer(directory, chat_template=chat_template)
    return TextTokenizer(load_tokenizer(directory))


def chat(text: str) -> Prompt:
    return Prompt((Message("user", text),), text, raw=text)


@pytest.mark.parametrize("template", [None, "{{ bos_token }}{{ messages[0].content }}", "{{ messages[0].content }}"])
@pytest.mark.parametrize("text", ["hi", "<s>hi", ""])
def test_no_path_doubles_the_bos(tmp_path: Path, template: str | None, text: str) -> None:
    prompts = [chat(text), Prompt((), raw=text)]
    for ids, prompt in zip(tokenizer(tmp_path, template).encode_prompts(prompts), prompts, strict=True):
        is_bare = template is not None and "bos_token" not in template and prompt.messages and "<s>" not in text
        assert ids.count(BOS) == (0 if is_bare else 1)


def test_prompts_with_and_without_messages_can_be_mixed(tmp_path: Path) -> None:
    loaded = tokenizer(tmp_path, "<{{ messages[0].content }}>")
    mixed = [Prompt((), raw="abc"), chat("abc"), Prompt((), raw="d")]
    assert loaded.encode_prompts(mixed) == [ids for prompt in mixed for ids in loaded.encode_prompts([prompt])]
    assert [loaded.decode(ids) for ids in loaded.encode_prompts(mixed)] == ["abc", "<abc>", "d"]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ strftime_now('%d %b %Y') }}", "26 Jul 2024"),
        ('{%- if strftime_now is defined %}{{ strftime_now( "%Y-%m-%d" ) }}{% else %}never{% endif %}', "2024-07-26"),
        # Llama 3.1 keeps to a date of its own unless it is told another.
        ("{% if not date_string is defined %}{% set date_string = 'fixed' %}{% endif %}{{ date_string }}", "fixed"),
    ],
)
def test_a_template_that_tells_the_date_tells_the_same_one_forever(tmp_path: Path, template: str, text: str) -> None:
    assert tokenizer(tmp_path, template).prompt_text(chat("hi")) == text


@pytest.mark.parametrize("template", ["{% set now = strftime_now %}{{ now('%d') }}", "{{ strftime_now('%' + 'd') }}"])
def test_a_date_that_cannot_be_pinned_is_refused(tmp_path: Path, template: str) -> None:
    with pytest.raises(InputError, match="today's date"):
        tokenizer(tmp_path, template)


def test_what_a_template_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    loaded = tokenizer(tmp_path, "{{ raise_exception('only user messages') }}")
    with pytest.raises(InputError, match="refuses the prompt: only user messages"):
        loaded.prompt_text(chat("hi"))


def test_a_template_cannot_reach_python(tmp_path: Path) -> None:
    loaded = tokenizer(tmp_path, "{{ messages.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(InputError, match="refuses the prompt"):
        loaded.prompt_text(chat("hi"))


def test_a_tokenizer_that_brings_code_is_not_loaded(tmp_path: Path) -> None:
    byte_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    settings = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", None]}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')\nclass Own: pass\n")
    with pytest.raises(InputError, match="no tokenizer that can be loaded") as caught:
        load_tokenizer(tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "was_run").exists()


def test_it_takes_any_tokenizer_of_transformers(tmp_path: Path) -> None:
    byte_tokenizer(tmp_path)
    fast = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"), bos_token="<s>")
    loaded = TextTokenizer(fast)
    assert loaded.encode(["ab"]) == [fast("ab", add_special_tokens=False)["input_ids"]]
    assert loaded.encode([]) == []
