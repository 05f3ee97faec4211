"""A prompt as a model receives it, for a reader."""

from robust_jax.models import model_tokenizer
from robust_jax.types import Prompt


def shown_prompt(prompt: Prompt, model: str) -> str:
    """The prompt's tokens as text, with their number; its messages for a model that runs elsewhere.

    Args:
        model: the model's name.

    Raises:
        InputError: there is no such model, or it cannot be asked in this form.
    """
    tokenizer = model_tokenizer(model)
    if tokenizer is None:
        shown = [f"[{message.role}]\n{message.content}" for message in prompt.messages] or [prompt.raw or ""]
        return "\n\n".join([*shown, "(the model counts its tokens itself)"])
    [ids] = tokenizer.encode_prompts([prompt])
    [problem] = tokenizer.encode([prompt.problem])
    return f"{tokenizer.written(ids)}\n\n({len(ids):,} tokens, {len(problem):,} of them in the problem alone)"
