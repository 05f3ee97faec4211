"""The tokenizer from a GGUF file against the ones that transformers builds, on any text."""

import json
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, Qwen2Tokenizer

from robust_jax.models.gguf_file import GgufFile
from robust_jax.models.gguf_tokenizer import CUTTINGS, read_tokenizer, score_merges
from robust_jax.models.tokenizer import TextTokenizer
from robust_jax.models.wheels import wheel_model
from robust_jax.types import Message, Prompt
from tests.models.gguf_writing import write_gguf

CORPUS = [
    "Ava picks 23 apples and gives 5 away. How many are left? Let's see: 23 - 5 = 18.\n\n#### 18\n",
    "It's what we'll do; they've said I'd better not, but you're right and I'm glad.\n  indented\n    twice\n",
    "The café's naïve façade cost 1,234.50 in 2024, 100 % more than Übermut, Ångström or straße.\n",
    "ONE Two threeFour HTTPServer don'T DON'T\r\n\tmain(){ return x[1]+y*2; } // done ... !!! ???\n",
    "東京は日本の首都です。Привет, мир! Ελληνικά मानक हिन्दी 🙂🙂\n",
]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
DEFINED = "<think>"

TEXTS = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40),
    st.lists(
        st.sampled_from(
            ["a", "The", " apples", "'s", "'LL", " 12", "3", "456", "  ", "\n", "\n\n", "\t", " \n ", "!", "...", "/",
             "é", "e\u0301", "東京", "²", "Ⅷ", "١٢", "🙂", "\u00a0", "\u200d", *SPECIAL, DEFINED, "<|im_",
             "_", "HTTPServer"]
        ),
        max_size=12,
    ).map("".join),
)  # fmt: skip

BYTE_LEVEL = ("gpt-2", "smollm", "llama-bpe", "dbrx", "gpt-4o", "qwen2", "tekken")


@cache
def trained(lone_digits: bool) -> tuple[list[str], list[str]]:
    """A vocabulary of bytes, words and runs of digits and spaces, and the merges that make them."""
    tokenizer = Tokenizer(models.BPE())
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if lone_digits else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*digits, cut])
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=alphabet, special_tokens=SPECIAL, show_progress=False
    )
    tokenizer.train_from_iterator([*CORPUS * 4, *(f"{n} " for n in range(0, 4000, 7)), " " * 16], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [" ".join(pair) for pair in model["merges"]]


def byte_level_file(directory: Path, kind: str, **more: Any) -> Path:
    tokens, merges = trained(lone_digits=kind == "smollm")
    tokens = [*tokens, DEFINED]
    metadata = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": kind,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * 3 + [1] * (len(tokens) - 4) + [4],
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        **more,
    }
    write_gguf(directory / f"{kind}.gguf", metadata, {})
    return directory / f"{kind}.gguf"


def theirs(path: Path) -> Any:
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def ids(tokenizer: Any, text: str) -> list[int]:
    found: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return found


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """Ours and transformers' own tokenizer of each kind."""
    directory = tmp_path_factory.mktemp("tokenizers")
    made = {}
    for kind in BYTE_LEVEL:
        path = byte_level_file(directory, kind)
        made[kind] = (read_tokenizer(GgufFile(path)), theirs(path))
    return made


def test_every_kind_is_tested() -> None:
    assert {CUTTINGS[kind] for kind in BYTE_LEVEL} == set(CUTTINGS.values())


@pytest.mark.parametrize("kind", [kind for kind in BYTE_LEVEL if kind not in ("smollm", "qwen2")])
@given(text=TEXTS)
@settings(deadline=None)
def test_tokens_are_those_of_transformers(pairs: dict[str, tuple[Any, Any]], kind: str, text: str) -> None:
    ours, reference = pairs[kind]
    assert ids(ours, text) == ids(reference, text)


@pytest.fixture(scope="module")
def qwen() -> Any:
    tokens, merges = trained(lone_digits=False)
    tokenizer = Qwen2Tokenizer(
        vocab={token: index for index, token in enumerate([*tokens, DEFINED])},
        merges=[tuple(merge.split(" ")) for merge in merges],
    )
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    tokenizer.add_tokens([DEFINED])
    return tokenizer


@given(text=TEXTS)
@settings(deadline=None)
def test_qwen_tokens_are_those_of_its_own_class(pairs: dict[str, tuple[Any, Any]], qwen: Any, text: str) -> None:
    """What transformers builds from a GGUF file does not compose accents; its Qwen tokenizer does."""
    assert ids(pairs["qwen2"][0], text) == ids(qwen, text)


@given(text=TEXTS)
@settings(deadline=None)
def test_smollm_tokens_are_those_of_gpt2_between_digits(pairs: dict[str, tuple[Any, Any]], text: str) -> None:
    """Transformers does not know this kind and cuts as GPT-2 does: that is right for pieces without digits."""
    ours, gpt2 = pairs["smollm"]
    expected = []
    for part in re.split(rf"({'|'.join(map(re.escape, [*SPECIAL, DEFINED]))})", text):
        digits = part not in (*SPECIAL, DEFINED) and {character for character in part if character.isnumeric()}
        pieces = re.split(f"([{re.escape(''.join(sorted(digits)))}])", part) if digits else [part]
        expected += [token for piece in pieces for token in ids(gpt2, piece)]
    assert ids(ours, text) == expected


@pytest.mark.parametrize("kind", BYTE_LEVEL)
@given(text=TEXTS)
@settings(deadline=None, max_examples=30)
def test_text_survives(pairs: dict[str, tuple[Any, Any]], kind: str, text: str) -> None:
    ours, _ = pairs[kind]
    decoded = ours.decode(ids(ours, text), clean_up_tokenization_spaces=False)
    assert decoded == (unicodedata.normalize("NFC", text) if kind == "qwen2" else text)


# ----------------------------------------------------------------------------------------------------------------------
# SentencePiece

PHI = ["<unk>", "<s>", "</s>", "<|user|>", "<|end|>", "<|assistant|>", "<|endoftext|>"]


def sentence_piece_file(directory: Path, architecture: str, **more: Any) -> Path:
    """Bytes, characters and the words of the corpus with everything that they begin with, long ones scored best."""
    words = sorted({"▁" * has_space + word for text in CORPUS for word in text.split() for has_space in (False, True)})
    starts = {word[:length] for word in words for length in range(1, len(word) + 1)}
    starts |= {word[start:] for word in words for start in range(1, len(word))} | {"▁▁", "▁▁▁▁", "aa", "aaa"}
    pieces = sorted({character for piece in starts for character in piece}) + sorted(
        (piece for piece in starts if len(piece) > 1), key=lambda piece: (len(piece), piece)
    )
    tokens = [*PHI, *(f"<0x{byte:02X}>" for byte in range(256)), *dict.fromkeys(pieces)]
    metadata = {
        "general.architecture": architecture,
        f"{architecture}.block_count": 1,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * (len(PHI) + 256) + [float(-n) for n in range(len(tokens) - len(PHI) - 256)],
        "tokenizer.ggml.token_type": [2, 3, 3, 3, 3, 3, 3] + [6] * 256 + [1] * (len(tokens) - len(PHI) - 256),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        **more,
    }
    write_gguf(directory / f"{architecture}.gguf", metadata, {})
    return directory / f"{architecture}.gguf"


@pytest.fixture(scope="module")
def sentence_piece_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Ours and transformers' own; phi3's, which writes the space before a text as Llama's first release did."""
    directory = tmp_path_factory.mktemp("tokenizers")
    # Ours as of a Llama file: Phi-3's special tokens take the white space after them, which transformers leaves out.
    return read_tokenizer(GgufFile(sentence_piece_file(directory, "llama"))), theirs(
        sentence_piece_file(directory, "phi3")
    )


@given(text=TEXTS)
@settings(deadline=None)
def test_sentence_piece_tokens_are_those_of_transformers(sentence_piece_pair: tuple[Any, Any], text: str) -> None:
    ours, reference = sentence_piece_pair
    found = ids(ours, text)
    assert found == ids(reference, text)
    assert ours(text)["input_ids"] == [1, *found]
    assert ours.decode(found) == reference.decode(found)


def test_merges_are_ranked_by_what_they_make() -> None:
    merges = score_merges(["a", "b", "ab", "abb", "<s>", "bb"], [1, 1, 1, 1, 3, 1], [0.0, 0.0, -2.0, -1.0, 0.0, -3.0])
    assert merges == [("ab", "b"), ("a", "bb"), ("a", "b"), ("b", "b")]


def test_phi3_tokens_take_the_white_space_after_them(tmp_path: Path) -> None:
    ours = read_tokenizer(GgufFile(sentence_piece_file(tmp_path, "phi3")))
    tokens = ours.convert_ids_to_tokens(ids(ours, "<|user|>\nAva<|end|>\n<|assistant|>\n<s>\n"))
    assert tokens == ["<|user|>", "▁Ava", "<|end|>", "<|assistant|>", "<s>", "▁", "<0x0A>"]


# ----------------------------------------------------------------------------------------------------------------------
# Special tokens and prompts


@pytest.mark.parametrize(
    ("kind", "more", "begins"),
    [
        ("gpt-2", {}, False),
        ("gpt-2", {"tokenizer.ggml.add_bos_token": True}, True),
        ("llama-bpe", {}, True),
        ("llama-bpe", {"tokenizer.ggml.add_bos_token": False}, False),
    ],
)
def test_a_text_begins_with_bos_where_the_file_or_its_kind_says_so(
    tmp_path: Path, kind: str, more: dict[str, bool], begins: bool
) -> None:
    ours = TextTokenizer(read_tokenizer(GgufFile(byte_level_file(tmp_path, kind, **more))))
    (plain,) = ours.encode_prompts([Prompt((), raw="apples")])
    assert (plain[0] == 1) == begins
    assert plain.count(1) == begins


def test_special_tokens_are_found_and_only_control_tokens_are_left_out_of_a_reply(
    pairs: dict[str, tuple[Any, Any]],
) -> None:
    ours = TextTokenizer(pairs["gpt-2"][0])
    (found,) = ours.encode(["<|im_start|>a<think>b<|im_end|>"])
    assert [found[0], found[-1]] == [1, 2] and len(found) == 5
    assert ours.decode(found) == "a<think>b"


def test_the_files_chat_template_writes_the_prompt(tmp_path: Path) -> None:
    template = "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}"
    path = byte_level_file(tmp_path, "llama-bpe", **{"tokenizer.chat_template": template})
    ours = TextTokenizer(read_tokenizer(GgufFile(path)))
    prompt = Prompt((Message("user", "a"), Message("assistant", "b")), raw="unused")
    assert ours.prompt_text(prompt) == "<|im_start|>user:a<|im_end|>assistant:b<|im_end|>"
    (found,) = ours.encode_prompts([prompt])
    assert found[0] == 1 and found.count(1) == 1


# ----------------------------------------------------------------------------------------------------------------------
# SmolLM2


@pytest.mark.slow
def test_smollm2_has_the_tokens_of_transformers() -> None:
    path = wheel_model("smollm2")
    ours, reference = read_tokenizer(GgufFile(path)), theirs(path)
    assert len(ours) == len(reference) == 49152

    @given(text=TEXTS)
    @settings(deadline=None, max_examples=2000)
    def compare(text: str) -> None:
        found = ids(ours, text)
        # transformers does not know this file's kind, which sets digits of every script apart: it breaks a run of
        # spaces up before a digit, and joins a space to the first byte of a digit beyond ASCII.
        if not re.search(r"\s\s\d|\s[²Ⅷ]", text):
            assert found == ids(reference, text)
        assert ours.decode(found) == reference.decode(found)

    compare()
    assert ours.convert_ids_to_tokens(ids(ours, "x  12")) == ["x", "ĠĠ", "1", "2"]
    messages = [{"role": "user", "content": "What is 7 + 5?\n"}, {"role": "assistant", "content": " 12"}]
    written = [tokenizer.apply_chat_template(messages, tokenize=False) for tokenizer in (ours, reference)]
    assert written[0] == written[1]
    assert written[0].startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
