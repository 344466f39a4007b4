"""Clients that repeat a server's window: opencode, LibreChat, Continue, aider, Crush, pi and OpenClaw, Zed, Codex.

Their limit is a promise: they fill a context up to it before they drop or summarize.  aider only warns.  Facts: the table of
clients in the facts on admission, and each client's own page of its configuration; a client without an address of its own is
linked to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item, count_of, directory
from kvlint.carriers.embedded import Around
from kvlint.carriers.proxies import served
from kvlint.carriers.proxies.upstreams import GENERAL, endpoint
from kvlint.facts import Fact
from kvlint.project import Project
from kvlint.source import Span, Text
from kvlint.subjects import Admission, Promise
from kvlint.tree import List, Map, Node

AIDER = (".aider.model.metadata.json", "aider.model.metadata.json")
AIDER_CONFIG = (".aider.conf.yml", ".aider.conf.yaml")
OLLAMA = "http://localhost:11434"


class Clients:
    name = "clients"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and (item.path.rpartition("/")[2] in AIDER or _kind(item.node) is not None)

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            if not isinstance(item.node, Map):
                continue
            around = served.around(item.path, project)
            if item.path.rpartition("/")[2] in AIDER:
                yield from _aider(item.node, around, _aider_address(item.path, project))
            else:
                yield from config(item.node, around)


CARRIER = Clients()


def config(root: Map, around: Around) -> Iterator[Finding]:
    """What a client's configuration promises, from whatever document it was read; nothing where it is none."""
    kind = _kind(root)
    if kind is not None:
        yield from _READERS[kind](root, around)


def _kind(root: Map) -> str | None:
    providers, endpoints = root.map("provider"), root.list("endpoints", "custom")
    if providers is not None and any(isinstance(each.value, Map) and "models" in each.value for each in providers):
        return "opencode"
    if endpoints is not None and any("baseURL" in each for each in endpoints.maps()):
        return "librechat"
    for kind, read in _BY_PROVIDER.items():
        if any(True for _ in read(root)):
            return kind
    if "model_context_window" in root and "model_provider" in root:
        return "codex"
    models = root.list("models")
    if models is not None and any("provider" in each and "model" in each for each in models.maps()):
        return "continue"
    return None


def _client(
    system: str,
    name: Text,
    around: Around,
    address: Text | None,
    limits: dict[str, Node | None],
    *,
    enforced: bool = True,
) -> Iterator[Admission]:
    """One model of a client, if it states a limit.  `limits`: by the kind of promise."""
    promises = []
    for kind, node in limits.items():
        tokens = count_of(node, kind, f"a literal {kind} limit")
        if isinstance(tokens, Fact) and tokens.value > 0:
            promises.append(Promise(kind, tokens, enforced, system))
    target = endpoint(address, (name.value,)) if name.known else None
    if promises:
        yield Admission(
            id="",
            system=system,
            unit=around.unit,
            name=name.value,
            place=_place(promises[0], name.span),
            target=served.reached(target, around),
            names=(name.value,),
            promises=tuple(promises),
            settings={"general": GENERAL},
        )


def _place(promise: Promise, fallback: Span) -> Span:
    return next(promise.tokens.spans(), fallback)


def _opencode(root: Map, around: Around) -> Iterator[Admission]:
    """`provider.<id>.models.<model>.limit`."""
    for provider in root.map("provider") or ():
        if not isinstance(provider.value, Map):
            continue
        address = provider.value.text("options", "baseURL")
        for model in provider.value.map("models") or ():
            limit = model.value.map("limit") if isinstance(model.value, Map) else None
            if limit is None or not isinstance(model.value, Map):
                continue
            name = model.value.text("id") or model.key.text
            limits = {"total": limit.get("context"), "output": limit.get("output")}
            yield from _client("opencode", name, around, address, limits)


def _librechat(root: Map, around: Around) -> Iterator[Admission]:
    """`endpoints.custom[].tokenConfig.<model>.context`, and the presets of `modelSpecs`."""
    addresses: dict[str, Text | None] = {}
    for each in (root.list("endpoints", "custom") or List((), root.span)).maps():
        addresses[each.string("name") or ""] = each.text("baseURL")
        for entry in each.map("tokenConfig") or ():
            if isinstance(entry.value, Map):
                limits = {"total": entry.value.get("context")}
                yield from _client("LibreChat", entry.key.text, around, each.text("baseURL"), limits)
    for spec in (root.list("modelSpecs", "list") or List((), root.span)).maps():
        preset = spec.map("preset")
        name = preset.text("model") if preset is not None else None
        if preset is None or name is None:
            continue
        limits = {"total": preset.get("maxContextTokens"), "output": preset.get("max_tokens")}
        yield from _client("LibreChat", name, around, addresses.get(preset.string("endpoint") or ""), limits)


def _continue(root: Map, around: Around) -> Iterator[Admission]:
    """`models[].defaultCompletionOptions`, and the keys of the older `config.json`."""
    for each in (root.list("models") or List((), root.span)).maps():
        name, options = each.text("model"), each.map("defaultCompletionOptions") or Map((), each.span)
        if name is None:
            continue
        address = each.text("apiBase")
        if address is None and each.string("provider") == "ollama":
            address = Text.at(OLLAMA, name.span)
        limits = {
            "total": options.get("contextLength") or each.get("contextLength"),
            "output": options.get("maxTokens") or each.get("completionOptions", "maxTokens"),
        }
        yield from _client("Continue", name, around, address, limits)


def _aider(root: Map, around: Around, address: Text | None) -> Iterator[Admission]:
    """Metadata by model; the address stands in the settings beside the file."""
    for entry in root:
        if not isinstance(entry.value, Map):
            continue
        slash = entry.key.value.find("/")
        limits = {"input": entry.value.get("max_input_tokens"), "output": entry.value.get("max_output_tokens")}
        yield from _client("aider", entry.key.text.slice(slash + 1), around, address, limits, enforced=False)


def _aider_address(path: str, project: Project) -> Text | None:
    base = directory(path)
    for name in AIDER_CONFIG:
        beside = f"{base}/{name}" if base else name
        for item in project.items(beside) if project.files.exists(beside) else ():
            found = item.node.text("openai-api-base") if isinstance(item.node, Map) else None
            if found is not None:
                return found
    return None


Listed = Iterator[tuple[Text | None, Map]]  # the address of a provider, and one of its models


def _listed(providers: Map | None, address: str, models: str, window: str) -> Listed:
    """Models with a window, in the lists of providers."""
    for provider in providers or ():
        if isinstance(provider.value, Map):
            for model in (provider.value.list(models) or List((), provider.value.span)).maps():
                if window in model:
                    yield provider.value.text(address), model


def _in_crush(root: Map) -> Listed:
    return _listed(root.map("providers"), "base_url", "models", "context_window")


def _in_pi(root: Map) -> Listed:
    return _listed(root.map("providers") or root.map("models", "providers"), "baseUrl", "models", "contextWindow")


def _in_zed(root: Map) -> Listed:
    """Under the provider, or one level deeper, where there are several of its kind."""
    for providers in (root.map("language_models"), root.map("language_models", "openai_compatible")):
        yield from _listed(providers, "api_url", "available_models", "max_tokens")


def _crush(root: Map, around: Around) -> Iterator[Admission]:
    for address, model in _in_crush(root):
        limits = {"total": model.get("context_window"), "output": model.get("default_max_tokens")}
        yield from _named("Crush", model.text("id"), around, address, limits)


def _pi(root: Map, around: Around) -> Iterator[Admission]:
    system = "OpenClaw" if root.map("models", "providers") is not None else "pi"
    for address, model in _in_pi(root):
        yield from _named(system, model.text("id"), around, address, {"total": model.get("contextWindow")})


def _zed(root: Map, around: Around) -> Iterator[Admission]:
    for address, model in _in_zed(root):
        limits = {"total": model.get("max_tokens"), "output": model.get("max_output_tokens")}
        yield from _named("Zed", model.text("name"), around, address, limits)


def _codex(root: Map, around: Around) -> Iterator[Admission]:
    address = root.text("model_providers", root.string("model_provider") or "", "base_url")
    limits = {"total": root.get("model_context_window"), "output": root.get("model_max_output_tokens")}
    yield from _named("Codex", root.text("model"), around, address, limits)


def _named(
    system: str, name: Text | None, around: Around, address: Text | None, limits: dict[str, Node | None]
) -> Iterator[Admission]:
    if name is not None:
        yield from _client(system, name, around, address, limits)


_BY_PROVIDER = {"crush": _in_crush, "pi": _in_pi, "zed": _in_zed}
_READERS = {
    "opencode": _opencode,
    "librechat": _librechat,
    "continue": _continue,
    "crush": _crush,
    "pi": _pi,
    "zed": _zed,
    "codex": _codex,
}
