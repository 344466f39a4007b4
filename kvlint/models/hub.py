"""The Hugging Face hub, asked through `huggingface_hub`: the one place of kvlint that may use the network.

Its own settings hold: HF_HUB_OFFLINE answers from its cache, HF_ENDPOINT and HF_TOKEN say where and as whom.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kvlint.lock import Row
from kvlint.models.catalogue import lookup_config
from kvlint.models.selection import selected
from kvlint.patterns import regex
from kvlint.records import dataclass

MAX_BYTES = 64 * 2**20  # the index of the largest checkpoints has some 20 MB
TIMEOUT = 30  # seconds
COMMIT = regex(r"[0-9a-f]{40}")
INDEX = "model.safetensors.index.json"


class Unreachable(Exception):
    """A source that cannot be had, in one line."""


class Offline(Unreachable):
    """The hub may not be asked, by HF_HUB_OFFLINE."""


@dataclass(slots=True)
class Hub:
    """`api`: what answers, with `model_info` and `hf_hub_download`; None: the library's own client, made when first asked."""

    api: Any = None

    def newest(self, name: str, asked: str | None) -> str:
        """The commit that a revision stands for now.  Raises `Unreachable`."""
        found = self._info(name, asked, files=False)
        return str(found.sha)

    def fetch(self, name: str, asked: str | None) -> Row:
        """A model's row at a revision (None: the default branch).  Raises `Unreachable`."""
        try:
            info = self._info(name, asked, files=True)
        except Offline:
            info = None
        at = info.sha if info is not None else asked
        path = self._file(name, "config.json", at)
        if info is None and path is None:
            raise Unreachable(f"{name}: its config.json is not in the cache, and HF_HUB_OFFLINE is set")
        revision = at if info is not None else _commit_of(path)
        config = self._configuration(name, at, path)
        index = self._json(self._file(name, INDEX, at), name)
        parameters, size = weights(info, index)
        if config is not None and lookup_config(config).quantization is not None:
            parameters = None  # the hub counts packed words
        return Row(name, asked, revision, config=config, parameters=parameters, weights_bytes=size)

    def _configuration(self, name: str, at: str | None, path: Path | None) -> dict[str, Any] | None:
        found = self._json(path, name)
        if found is None:
            return None
        beside = self._json(self._file(name, "hf_quant_config.json", at), name)
        root, nested, text = selected({**found, "hf_quant_config": beside} if beside is not None else found)
        return {**root, nested: text} if nested is not None else root

    def _info(self, name: str, asked: str | None, *, files: bool) -> Any:
        return self._ask(name, lambda api: api.model_info(name, revision=asked, files_metadata=files, timeout=TIMEOUT))

    def _file(self, name: str, file: str, at: str | None) -> Path | None:
        found = self._ask(name, lambda api: api.hf_hub_download(name, file, revision=at))
        return None if found is None else Path(found)

    def _json(self, path: Path | None, name: str) -> dict[str, Any] | None:
        if path is None:
            return None
        try:
            if path.stat().st_size > MAX_BYTES:
                raise ValueError("too large")
            found = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise Unreachable(f"{name}: {path.name} cannot be read: {error}") from error
        return found if isinstance(found, dict) else None

    def _ask(self, name: str, call: Callable[[Any], Any]) -> Any:
        """The answer; None for a file that the repository does not have."""
        try:
            from huggingface_hub import HfApi, errors
        except ImportError as error:
            raise Unreachable(f"{name}: huggingface_hub cannot be imported ({error})") from error
        if self.api is None:
            self.api = HfApi()
        try:
            return call(self.api)
        except errors.OfflineModeIsEnabled as error:
            raise Offline(f"{name}: HF_HUB_OFFLINE is set") from error
        except errors.LocalEntryNotFoundError as error:
            if _offline():
                return None
            raise Unreachable(f"{name}: the hub cannot be reached") from error
        except errors.EntryNotFoundError:
            return None
        except errors.GatedRepoError as error:
            raise Unreachable(f"{name}: its licence must be accepted on the hub, and HF_TOKEN set") from error
        except errors.RepositoryNotFoundError as error:
            raise Unreachable(
                f"{name}: the hub has no such repository, or needs HF_TOKEN for it; else give [[model]] config in kvlint.toml"
            ) from error
        except errors.RevisionNotFoundError as error:
            raise Unreachable(f"{name}: the hub has no such revision") from error
        except Exception as error:
            raise Unreachable(f"{name}: the hub cannot be reached ({type(error).__name__})") from error


def _offline() -> bool:
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _commit_of(path: Path | None) -> str | None:
    """The cache keeps a file under the commit that it belongs to."""
    return next((part for part in reversed(path.parts) if COMMIT.fullmatch(part)), None) if path is not None else None


def weights(info: Any, index: Mapping[str, Any] | None) -> tuple[int | None, int | None]:
    """Parameters, and bytes of the weights: as the index states them where the files' sizes bear it out, else those sizes.

    A file is a little larger than its tensors, by its header; an index that says more or far less was not kept up.
    """
    listed = getattr(info, "siblings", None) or ()
    sizes = {each.rfilename: each.size for each in listed if isinstance(each.size, int)}
    about = index.get("metadata") if index is not None else None
    where = index.get("weight_map") if index is not None else None
    names = set(where.values()) if isinstance(where, dict) and where else {"model.safetensors"}
    stored = sum(sizes[each] for each in names) if names <= sizes.keys() else None
    stated = about.get("total_size") if isinstance(about, dict) else None
    size = stored
    if isinstance(stated, int) and (stored is None or 0 <= stored - stated <= stored // 50):
        size = stated
    counted = getattr(getattr(info, "safetensors", None), "total", None)
    return (counted if isinstance(counted, int) else None), size
