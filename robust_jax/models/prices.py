"""What replies cost, by a table of prices that the user keeps."""

from pathlib import Path
from typing import NamedTuple

import yaml

from robust_jax.errors import InputError
from robust_jax.types import Response


class Price(NamedTuple):
    """Dollars a million tokens."""

    input: float
    output: float

    def of(self, response: Response) -> float:
        """Dollars that a reply cost."""
        return self.of_tokens(response.prompt_tokens, response.num_tokens)

    def of_tokens(self, prompt: int, completion: int) -> float:
        """Dollars for so many tokens read and written."""
        return (prompt * self.input + completion * self.output) / 1e6


def read_price(path: Path, model: str) -> Price:
    """The price of a model in a YAML file of `NAME: {input: dollars, output: dollars}`.

    Raises:
        InputError: the file cannot be read, or has no such price.
    """
    try:
        table = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise InputError(f"--prices {path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise InputError(f"--prices {path}: not valid YAML") from None
    if not isinstance(table, dict) or model not in table:
        raise InputError(f"--prices {path}: has no price of {model!r}: add `{model}: {{input: 0.5, output: 2}}`")
    row = table[model]
    numbers = [row.get(name) for name in Price._fields] if isinstance(row, dict) else []
    if len(numbers) != 2 or not all(isinstance(number, (int, float)) and number >= 0 for number in numbers):
        raise InputError(f"--prices {path}: the price of {model!r} is no pair of `input` and `output` in dollars")
    return Price(float(row["input"]), float(row["output"]))
