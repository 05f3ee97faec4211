"""Where attention goes, against the attention weights that transformers gives out."""

from pathlib import Path

import jax
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from robust_jax.models import LocalModel, load_model
from robust_jax.models import attention_mass as module
from robust_jax.models.attention_mass import attention_mass
from robust_jax.models.checkpoint import SafetensorsFiles, load_decoder, save_decoder
from robust_jax.models.config import read_config
from robust_jax.models.decoder import Decoder
from robust_jax.types import AttentiveModel, Message, Prompt, TextSpan
from tests.models.byte_model import BYTES, byte_tokenizer
from tests.models.test_families import CASES, SIZES, reference_model

LENGTH = 41
CHAT = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


def of_transformers(reference: torch.nn.Module, tokens: np.ndarray) -> np.ndarray:
    """[L, T, S], the mean over heads."""
    with torch.no_grad():
        layers = reference(torch.tensor(tokens[None]), output_attentions=True).attentions
    return np.stack([layer[0].mean(axis=0).numpy() for layer in layers])


@pytest.mark.parametrize(
    "case",
    ["llama", "llama3 rope", "qwen2, window from a layer", "qwen3 tied, wide heads, eps", "phi3 longrope tied"],
)
def test_masses_are_sums_of_the_weights_of_transformers(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUERIES_AT_ONCE", 8)  # So that several portions are added up.
    reference = reference_model(*CASES[case])
    reference.save_pretrained(tmp_path)
    decoder = load_decoder(read_config(tmp_path), SafetensorsFiles(tmp_path))
    generator = np.random.default_rng(0)
    tokens = generator.integers(0, SIZES["vocab_size"], LENGTH, np.int64)
    asking = np.sort(generator.permutation(np.arange(15, LENGTH))[:19])
    sets = generator.integers(0, 3, LENGTH) == np.arange(3)[:, None]
    found = attention_mass(decoder, tokens.astype(np.int32), asking, sets)
    weights = of_transformers(reference, tokens)[:, asking]
    expected = np.stack([weights[:, :, chosen].sum(axis=-1).mean(axis=-1) for chosen in sets], axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-5)


def byte_model(directory: Path, chat_template: str | None) -> LocalModel:
    save_decoder(Decoder(BYTES, key=jax.random.key(0)), directory)
    byte_tokenizer(directory, chat_template=chat_template)
    loaded = load_model(str(directory), batch_size=8)
    assert isinstance(loaded, LocalModel) and isinstance(loaded, AttentiveModel)
    return loaded


@pytest.mark.parametrize("chat_template", [None, CHAT])
def test_spans_are_found_among_the_tokens(tmp_path: Path, chat_template: str | None) -> None:
    local = byte_model(tmp_path, chat_template)
    prompt = Prompt((Message("user", "café 12"),), raw="café 12")
    text, reply = local.prompt_text(prompt), "so 4µ"
    tokens = local.tokenizer.encode_prompts([prompt])[0] + local.tokenize(reply)
    # A token is a byte, but for the BOS, which is three characters of the template's text or stands before the text.
    shift = -2 if chat_template else 1
    before = shift + len(text.encode())
    assert len(tokens) == before + len(reply.encode())

    def of_prompt(start: int, end: int) -> list[int]:
        return [*range(shift + len(text[:start].encode()), shift + len(text[:end].encode()))]

    accent = text.index("é")
    members = [of_prompt(accent, accent + 1), [*of_prompt(accent + 2, accent + 4), before, before + 1]]
    found = local.attention_mass(
        prompt,
        reply,
        [TextSpan(True, 3, 5)],
        [[TextSpan(False, accent, accent + 1)], [TextSpan(False, accent + 2, accent + 4), TextSpan(True, 0, 2)]],
    )
    reference = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager")
    rows = of_transformers(reference, np.array(tokens))[:, before + 3 :]
    assert rows.shape[1] == 3  # The letter after the digit has two bytes.
    expected = np.stack([rows[:, :, chosen].sum(axis=-1).mean(axis=-1) for chosen in members], axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_nobody_asks_and_no_room(tmp_path: Path) -> None:
    local = byte_model(tmp_path, None)
    prompt = Prompt((), raw="abc")
    everything = [[TextSpan(False, 0, 3)]]
    assert np.isnan(local.attention_mass(prompt, "", [TextSpan(True, 0, 9)], everything)).all()
    too_long = "x" * BYTES.max_positions
    assert np.isnan(local.attention_mass(prompt, too_long, [TextSpan(True, 0, 9)], everything)).all()
