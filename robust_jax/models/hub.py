"""Models on the Hugging Face hub, through `huggingface_hub`: its cache, its tokens, its offline mode."""

from pathlib import Path

from robust_jax.errors import InputError

CONFIGURATION = ("config.json", "generation_config.json")
WEIGHTS = ("model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json")
TOKENIZER = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
)


def hub_directory(name: str, *, whole: bool = True) -> Path:
    """The local directory of the model `org/name[@revision]`, downloaded if it is not in the hub's cache.

    Args:
        whole: False gets the configuration alone.

    Raises:
        InputError: there is no such model or revision, access is not granted, or the hub cannot be reached and the
            cache does not have it.
    """
    from huggingface_hub import constants, errors, snapshot_download  # Takes a second to import.

    repository, _, revision = name.partition("@")
    patterns = [*CONFIGURATION, *(WEIGHTS + TOKENIZER if whole else ())]
    try:
        return Path(snapshot_download(repository, revision=revision or None, allow_patterns=patterns))
    except errors.HFValidationError:
        raise InputError(f"hf:{name} is not of the form hf:org/name or hf:org/name@revision") from None
    except errors.GatedRepoError:
        raise InputError(
            f"hf:{name} is gated: accept its terms at https://huggingface.co/{repository} and set HF_TOKEN"
        ) from None
    except errors.RepositoryNotFoundError:
        raise InputError(
            f"hf:{name}: the hub shows no such model; check the spelling, or set HF_TOKEN if it is private"
        ) from None
    except errors.RevisionNotFoundError:
        raise InputError(
            f"hf:{name}: the model has no revision {revision or 'main'!r}; name a branch, tag or commit"
        ) from None
    except errors.LocalEntryNotFoundError:
        why = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else "the hub cannot be reached"
        raise InputError(
            f"hf:{name} is not complete in the cache {constants.HF_HUB_CACHE} and {why}; "
            f"download it where there is a connection, or set HF_HOME to a cache that has it"
        ) from None
    except errors.HTTPError as error:
        raise InputError(f"hf:{name}: the download failed ({' '.join(str(error).split())}); try again") from None
