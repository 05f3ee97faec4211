"""features/: every committed row comes back, and a damaged file is never taken for a whole one."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.runs import FeatureStore, Key
from tests.runs.making_samples import temporary_folder


def key(number: int, item: str = "apples") -> Key:
    return ("measure", item, f"v{number}", 0)


def rows(keys: list[Key], offset: float) -> dict[str, np.ndarray]:
    hidden = np.arange(len(keys) * 6, dtype=np.float32).reshape(len(keys), 2, 3) + offset
    return {"hidden": hidden, "embedding": hidden[:, 0] * 2, "output_statistics": np.full((len(keys), 3), np.nan, "f4")}


WRITES = st.lists(
    st.tuples(
        st.sampled_from(["apples", "pears"]),
        st.sampled_from(["measure-0", "measure-1", "beam 1"]),
        st.lists(st.integers(0, 5), unique=True, max_size=4),
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(writes=WRITES)
def test_the_store_against_a_dictionary(writes: list[tuple[str, str, list[int]]]) -> None:
    with temporary_folder() as folder:
        store = FeatureStore(folder / "features")
        blocks: dict[tuple[str, str], tuple[list[Key], dict[str, np.ndarray]]] = {}
        for number, (item, block, numbers) in enumerate(writes):
            keys = [key(n, item) for n in numbers]
            arrays = rows(keys, 100.0 * number)
            store.write(item, block, keys, arrays)
            blocks.pop((item, block), None)
            blocks[item, block] = keys, arrays
        for seen in (store, FeatureStore(folder / "features")):
            for item in ("apples", "pears"):
                expected: dict[Key, dict[str, np.ndarray]] = {}
                for (owner, _), (keys, arrays) in blocks.items():
                    for row, k in enumerate(keys if owner == item else []):
                        expected.pop(k, None)
                        expected[k] = {name: array[row] for name, array in arrays.items()}
                keys, arrays = seen.read(item)
                assert keys == list(expected)
                assert all(array.dtype == np.float32 for array in arrays.values())
                for row, k in enumerate(keys):
                    for name, array in expected[k].items():
                        np.testing.assert_array_equal(arrays[name][row], array)
                assert seen.has_all(expected)
                assert not seen.has_all([*expected, key(9, item)])


def test_gather_follows_the_keys_over_items_and_blocks(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path / "features")
    for item, block, numbers, offset in [("a", "x", [1, 2], 0.0), ("b", "x", [1], 50.0), ("a", "y", [3], 90.0)]:
        keys = [key(n, item) for n in numbers]
        store.write(item, block, keys, rows(keys, offset))
    gathered = store.gather([key(3, "a"), key(1, "b"), key(2, "a")])
    assert gathered["hidden"][:, 0, 0].tolist() == [90.0, 50.0, 6.0]
    assert store.gather([]) == {}
    with pytest.raises(KeyError):
        store.gather([key(4, "a")])


def test_a_view_that_is_not_contiguous_is_stored_as_it_reads(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(3, 2).T
    FeatureStore(tmp_path).write("apples", "x", [key(1), key(2)], {"embedding": array})
    np.testing.assert_array_equal(FeatureStore(tmp_path).read("apples")[1]["embedding"], array)


@settings(max_examples=20, deadline=None)
@given(names=st.lists(st.text(st.characters(exclude_categories=()), max_size=120), unique=True, max_size=8))
def test_any_item_name_gets_a_folder_of_its_own(names: list[str]) -> None:
    with temporary_folder() as folder:
        root = folder / "features"
        store = FeatureStore(root)
        names = [*names, "Apples", "apples", "../apples", "/", "..", "", "CON", "a/b", "a-b"]
        names = list(dict.fromkeys(names))
        for number, name in enumerate(names):
            store.write(name, name, [("a", name, "v", 0)], {"embedding": np.full((1, 1), number, "f4")})
        files = list(folder.rglob("*.safetensors"))
        assert len({str(file).lower() for file in files}) == len(names)
        assert all(file.parent.parent == root for file in files)
        fresh = FeatureStore(root)
        assert [fresh.read(name)[1]["embedding"].item() for name in names] == list(range(len(names)))


def one_file(folder: Path) -> tuple[Path, list[Key], dict[str, np.ndarray]]:
    keys = [key(1), key(2)]
    arrays = rows(keys, 0.5)
    FeatureStore(folder).write("apples", "measure-0", keys, arrays)
    return folder / "apples" / "measure-0.safetensors", keys, arrays


def test_a_file_cut_off_anywhere_is_named(tmp_path: Path) -> None:
    file, *_ = one_file(tmp_path)
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"apples/measure-0\.safetensors is damaged .*: delete it") as refusal:
            FeatureStore(tmp_path).read("apples")
        assert "\n" not in str(refusal.value)


def test_no_changed_byte_changes_what_is_read(tmp_path: Path) -> None:
    file, keys, arrays = one_file(tmp_path)
    whole = file.read_bytes()
    refused = 0
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            seen_keys, seen = FeatureStore(tmp_path).read("apples")
        except InputError:
            refused += 1
            continue
        assert seen_keys == keys
        for name, array in arrays.items():
            np.testing.assert_array_equal(seen[name], array)
    assert refused > 0.9 * len(whole)


def test_files_with_other_features_do_not_mix(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    store.write("apples", "x", [key(1)], {"embedding": np.zeros((1, 4), "f4")})
    store.write("apples", "y", [key(2)], {"embedding": np.zeros((1, 5), "f4")})
    with pytest.raises(InputError, match="other features"):
        store.read("apples")


def test_rows_and_keys_must_fit(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    wrong = [([key(1)], 2), ([key(1), key(1)], 2), ([key(1, "pears")], 1)]
    for keys, count in wrong:
        with pytest.raises(ValueError, match="features of apples"):
            store.write("apples", "x", keys, {"embedding": np.zeros((count, 4), "f4")})
    assert not list(tmp_path.iterdir())
