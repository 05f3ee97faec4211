"""The tokenizer that a GGUF file carries in its metadata.

The file has the vocabulary, the merges or scores, and a name for the rest: how text is cut before merging. What each
name means is known here for the families of `gguf_checkpoint`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gguf import TokenType
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from robust_jax.errors import InputError
from robust_jax.models.gguf_file import GgufFile

SPECIAL_TOKENS = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
"""`transformers`' names and the file's."""

SPACE = "▁"
"""Stands for a space in a SentencePiece vocabulary."""

ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CAPITALS, SMALLS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
ONE_CASE = rf"[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}*{SMALLS}+%s|[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}+{SMALLS}*%s"

CL100K = rf"{ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}"
QWEN2 = rf"{ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}"
TEKKEN = rf"{ONE_CASE % ('', '')}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"
O200K = rf"{ONE_CASE % (ENDINGS + '?', ENDINGS + '?')}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"


class Cutting(NamedTuple):
    """How a byte-level tokenizer treats text before it merges."""

    pattern: str | None = None
    """What one piece looks like; None is GPT-2's pattern."""
    lone_digits: bool = False
    """Every digit is first set apart."""
    whole_pieces: bool = False
    """A piece that is in the vocabulary is one token, whatever the merges say."""
    composes: bool = False
    """Accented letters are first written as one character (NFC)."""
    adds_bos: bool = False
    """Where the file does not say."""


CUTTINGS = {
    "gpt-2": Cutting(),
    "smollm": Cutting(lone_digits=True),
    "llama-bpe": Cutting(CL100K, whole_pieces=True, adds_bos=True),
    "llama3": Cutting(CL100K, whole_pieces=True, adds_bos=True),
    "llama-v3": Cutting(CL100K, whole_pieces=True, adds_bos=True),
    "dbrx": Cutting(CL100K),  # Phi-4
    "gpt-4o": Cutting(O200K),  # Phi-4-mini
    "qwen2": Cutting(QWEN2, composes=True),
    "tekken": Cutting(TEKKEN, whole_pieces=True, adds_bos=True),  # Mistral Nemo
}
"""By `tokenizer.ggml.pre`."""


def read_tokenizer(file: GgufFile) -> Any:
    """The file's tokenizer with its special tokens and chat template, as a `transformers` tokenizer.

    Raises:
        InputError: the file has no tokenizer, a damaged one, or one of a kind that is not supported; it is named.
    """
    from transformers import PreTrainedTokenizerFast  # Takes over a second to import.

    described = {key.removeprefix("tokenizer.ggml."): value for key, value in file.metadata.items()}
    if "tokens" not in described:
        raise InputError(f"{file.path} has no tokenizer; name a file that has one")
    if described.get("add_eos_token"):
        raise InputError(f"{file.path}: a tokenizer that ends every text (add_eos_token) is not supported")
    model, cut = described.get("model"), str(described.get("pre"))
    if model not in ("gpt2", "llama"):
        raise InputError(f"{file.path}: tokenizer {model!r} is not supported; supported: 'gpt2', 'llama'")
    cutting = CUTTINGS.get(cut) if model == "gpt2" else None
    if model == "gpt2" and not cutting:
        raise InputError(f"{file.path}: pre-tokenizer {cut!r} is not supported; supported: {', '.join(CUTTINGS)}")
    try:
        tokenizer = _byte_level(described, cutting) if cutting else _sentence_piece(described)
        # Phi-3 was trained with the white space after a special token as part of it, which GGUF does not say.
        _add_special_tokens(tokenizer, described, strips_right=not cutting and "phi3.block_count" in file.metadata)
        special = {
            name: described["tokens"][described[key]] for name, key in SPECIAL_TOKENS.items() if key in described
        }
        if described.get("add_bos_token", cutting.adds_bos if cutting else True) and "bos_token" in special:
            tokenizer.post_processor = processors.TemplateProcessing(
                single=[special["bos_token"], "$A"],
                special_tokens=[(special["bos_token"], described["bos_token_id"])],
            )
    except Exception as error:  # `tokenizers` raises nothing narrower.
        raise InputError(f"{file.path}: its tokenizer is damaged ({error!r}); download it again") from None
    template = file.metadata.get("tokenizer.chat_template")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **special)


def _byte_level(described: Mapping[str, Any], cutting: Cutting) -> Tokenizer:
    """Byte-pair encoding of pieces of text spelled in GPT-2's alphabet of 256 bytes."""
    merges = [(left, right) for left, right in (merge.split(" ") for merge in described["merges"])]
    tokenizer = Tokenizer(models.BPE(_numbered(described["tokens"]), merges, ignore_merges=cutting.whole_pieces))
    if cutting.composes:
        tokenizer.normalizer = normalizers.NFC()
    steps: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if cutting.lone_digits else []
    if cutting.pattern:
        steps.append(pre_tokenizers.Split(Regex(cutting.pattern), behavior="isolated"))
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cutting.pattern is None))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentence_piece(described: Mapping[str, Any]) -> Tokenizer:
    """SentencePiece's BPE: whole texts without cutting, characters outside the vocabulary as bytes."""
    tokens = described["tokens"]
    tokenizer = Tokenizer(
        models.BPE(
            _numbered(tokens),
            score_merges(tokens, described["token_type"], described["scores"]),
            unk_token=tokens[described["unknown_token_id"]],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    begins_with_space = described.get("add_space_prefix", True)
    tokenizer.normalizer = normalizers.Sequence(
        [*([normalizers.Prepend(SPACE)] if begins_with_space else []), normalizers.Replace(" ", SPACE)]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            *([decoders.Strip(" ", 1, 0)] if begins_with_space else []),
        ]
    )
    return tokenizer


def score_merges(tokens: Sequence[str], kinds: Sequence[int], scores: Sequence[float]) -> list[tuple[str, str]]:
    """The merges that a SentencePiece vocabulary implies, first the ones with the best results.

    SentencePiece merges the neighbours whose union scores best; so every way of cutting a token in two tokens is a
    merge, ranked by the token's score, the longest left part first.
    """
    normal = {token: index for index, token in enumerate(tokens) if kinds[index] == TokenType.NORMAL}
    ranked = sorted(normal, key=lambda token: (-scores[normal[token]], normal[token]))
    return [
        (token[:cut], token[cut:])
        for token in ranked
        for cut in reversed(range(1, len(token)))
        if token[:cut] in normal and token[cut:] in normal
    ]


def _add_special_tokens(tokenizer: Tokenizer, described: Mapping[str, Any], *, strips_right: bool) -> None:
    """Register the tokens that are found whole in a text; control tokens are left out of decoded text."""

    def marked(*wanted: TokenType) -> list[AddedToken]:
        return [
            AddedToken(
                token,
                normalized=False,
                special=TokenType.USER_DEFINED not in wanted,
                rstrip=strips_right and token not in ("<unk>", "<s>", "<|endoftext|>"),
            )
            for token, kind in zip(described["tokens"], described["token_type"], strict=True)
            if kind in wanted
        ]

    tokenizer.add_special_tokens(marked(TokenType.CONTROL, TokenType.UNKNOWN))
    tokenizer.add_tokens(marked(TokenType.USER_DEFINED))


def _numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {token: index for index, token in enumerate(tokens)}
