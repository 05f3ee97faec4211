"""Imports the files of a collection of template functions, which runs their authors' code.

Files import their siblings by bare name or from the collection's root. Whatever they import by the names `random` and
`numpy` are stand-ins; what other modules import stays as it is. Between imports nothing of a collection is left in
`sys.modules`.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from robust_jax.problems.python_functions.numpy_stand_in import NUMPY, NUMPY_RANDOM
from robust_jax.problems.python_functions.random_stand_in import RANDOM

_STAND_INS = {"random": RANDOM, "numpy": NUMPY, "numpy.random": NUMPY_RANDOM}
_lock = RLock()


class Collection(MetaPathFinder):
    """The modules below one folder, imported as they are asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._folder: Path | None = None
        """The folder whose files are importing."""
        self._modules: dict[Path, dict[str, ModuleType]] = {}
        """What the files of a folder see of the collection: two folders may each hold a `tools.py`."""
        self._builtins = {**vars(builtins), "__import__": self._import}

    def load(self, path: Path) -> ModuleType:
        """The module of one file.

        Raises:
            Exception: whatever the file raises while it is imported.
        """
        with self._seen_from(path.resolve().parent):
            return import_module(path.stem)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """`import` as the collection's files see it."""
        if level == 0 and name in _STAND_INS:
            # `import numpy.random` binds the name numpy; `from numpy.random import …` wants the module itself.
            return _STAND_INS[name if fromlist else name.partition(".")[0]]
        file = (globals or {}).get("__file__")
        with self._seen_from(Path(file).parent if file else self.root):
            return builtins.__import__(name, globals, locals, fromlist or (), level)

    @contextmanager
    def _seen_from(self, folder: Path) -> Iterator[None]:
        """Import as the files of a folder do: first from there, then from the root, then from everywhere else."""
        with _lock:
            before = self._folder
            if before == folder:
                yield
                return
            outer = self._take_away(before)
            foreign = self._put(folder)
            self._folder = folder
            sys.meta_path.insert(0, self)
            try:
                yield
            finally:
                sys.meta_path.remove(self)
                self._take_away(folder)
                sys.modules.update(foreign)
                sys.modules.update(outer)
                self._folder = before

    def _take_away(self, folder: Path | None) -> dict[str, ModuleType]:
        ours = {name: module for name, module in sys.modules.items() if _is_ours(module)}
        for name in ours:
            del sys.modules[name]
        if folder is not None:
            self._modules[folder] = ours
        return ours

    def _put(self, folder: Path) -> dict[str, ModuleType]:
        """Make a folder's modules known; gives the others whose names they would have."""
        known = self._modules.get(folder, {})
        names = {path.stem for place in (folder, self.root) for path in place.iterdir()} - sys.stdlib_module_names
        foreign = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in names}
        foreign = {name: module for name, module in foreign.items() if self._place(name.partition(".")[0], folder)}
        for name in foreign:
            del sys.modules[name]
        sys.modules.update(known)
        return foreign

    def _place(self, name: str, folder: Path) -> Path | None:
        """The file or folder that a name without dots stands for."""
        for parent in (folder, self.root):
            for place in (parent / name / "__init__.py", parent / f"{name}.py"):
                if place.is_file():
                    return place
        # Of a folder without `__init__.py`, a package elsewhere takes precedence, as everywhere in Python.
        if PathFinder.find_spec(name) is None:
            return next((parent / name for parent in (folder, self.root) if (parent / name).is_dir()), None)
        return None

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """The collection's module of that name."""
        last = name.rpartition(".")[2]
        place: Path | None
        if path is None:
            place = self._place(last, self._folder or self.root)
        else:
            candidates = [Path(p) / end for p in path for end in (f"{last}/__init__.py", f"{last}.py", last)]
            place = next((c for c in candidates if c.is_file() or c.is_dir()), None)
        if place is None:
            return None
        if place.is_dir():
            spec = ModuleSpec(name, _FolderLoader(), is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        loader = _FileLoader(name, str(place), self._builtins)
        spec = ModuleSpec(name, loader, origin=str(place), is_package=place.name == "__init__.py")
        spec.has_location = True
        if place.name == "__init__.py":
            spec.submodule_search_locations = [str(place.parent)]
        return spec


class _FileLoader(SourceFileLoader):
    """Runs a file with the collection's own `import`, and leaves no compiled file beside it."""

    def __init__(self, name: str, path: str, names: Mapping[str, Any]) -> None:
        super().__init__(name, path)
        self._builtins = names

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._builtins
        super().exec_module(module)

    def _cache_bytecode(self, *args: Any) -> None:
        pass


class _FolderLoader(Loader):
    """A package without `__init__.py`."""

    def exec_module(self, module: ModuleType) -> None:
        pass


def _is_ours(module: object) -> bool:
    spec = getattr(module, "__spec__", None)
    return isinstance(getattr(spec, "loader", None), (_FileLoader, _FolderLoader))
