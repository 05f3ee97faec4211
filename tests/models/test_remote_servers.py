"""A model behind a real server on loopback, `transformers serve`, says what the same model says here."""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from transformers.utils.import_utils import is_serve_available

from robust_jax.cli import main
from robust_jax.models.sources import open_checkpoint
from robust_jax.runs import SampleStore

TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}Answer:"
SECONDS_TO_START = 120
PROBLEMS = [
    {
        "problem": "Ava picks 14 tulips in the morning and 9 tulips in the afternoon. "
        "How many tulips does Ava pick that day?",
        "answer": 23,
    },
    {
        "problem": "The school hall has 40 seats. When the concert starts, 25 of them are taken. "
        "Omar counts the empty seats. How many seats are empty?",
        "answer": 15,
    },
]
"""Of the kind that builtin:tiny was trained on."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Address of a server that loads whatever directory a request names as its model."""
    if not is_serve_available():
        pytest.skip("needs what `transformers serve` needs: pip install transformers[serving]")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = "from transformers.cli.transformers import main; main()"
    words = ["serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    process = subprocess.Popen([sys.executable, "-c", start, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        for _ in range(SECONDS_TO_START * 5):
            assert process.poll() is None, process.stderr and process.stderr.read().decode()
            try:
                httpx.get(f"http://127.0.0.1:{port}/health").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("endpoint", ["completions", pytest.param("chat", marks=pytest.mark.slow)])
def test_replies_of_a_server_are_those_of_the_same_model_here(server: str, endpoint: str, tmp_path: Path) -> None:
    model = tmp_path / "tiny"
    shutil.copytree(open_checkpoint("builtin:tiny").path, model)
    if endpoint == "chat":
        path = model / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": TEMPLATE}))
    data = tmp_path / "problems.jsonl"
    data.write_text("\n".join(map(json.dumps, PROBLEMS)))
    words = ["rrb", "run", "--data", str(data), "--perturbation", "word_reversal", "--max-tokens", "40"]
    assert main([*words, "--model", str(model), "--out", str(tmp_path / "here")]) == 0
    there = ["--model", f"openai:{model}", "--base-url", server, "--endpoint", endpoint, "--concurrency", "4"]
    assert main([*words, *there, "--out", str(tmp_path / "there")]) == 0
    here, remote = (SampleStore(tmp_path / name / "samples.jsonl") for name in ("here", "there"))
    assert len(here) == len(remote) == 4
    for sample in here:
        other = remote.get((sample.arm, sample.item, sample.variation, sample.attempt))
        assert other is not None and other.response == sample.response
        assert (other.status, other.extracted, other.score) == (sample.status, sample.extracted, sample.score)
        assert other.prompt_tokens == sample.prompt_tokens
    if endpoint == "completions":  # The plain form is the one that the model was trained on.
        assert any(sample.is_correct for sample in remote)
