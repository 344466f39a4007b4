"""LiteLLM: a proxy's `config.yaml`, wherever such a document stands, and the operator's LiteLLMModel.

Facts: litellm==1.110.2 (data/admission.toml).  A rate becomes a limit of requests in flight: the first that is set of
`max_parallel_requests`, `rpm`, `tpm` by a formula, and the router's default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvlint.admission import system
from kvlint.carriers.arguments import truth
from kvlint.carriers.base import Finding, Item, count_of, is_number
from kvlint.carriers.embedded import Around
from kvlint.carriers.kubernetes.cluster import Cluster, unit
from kvlint.carriers.proxies import served
from kvlint.carriers.proxies.upstreams import endpoint
from kvlint.facts import Default, Fact, Unknown, Value, Written, quantity
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass, field
from kvlint.source import Text
from kvlint.subjects import Admission, Problem, Promise
from kvlint.tree import Entry, List, Map, Node, Scalar

_LIMIT = regex(
    r"concurren|inflight|parallel|maxrequests|contextwindow|contextlength|contextsize|maxcontext|maxmodellen"
    r"|max(?:input|output)tokens"
)
ENVIRONMENT = "os.environ/"
_FALLBACKS = ("context_window_fallbacks", "fallbacks")


class LiteLLM:
    name = "litellm"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and is_config(item.node)

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            if isinstance(item.node, Map):
                yield from config(item.node, served.around(item.path, project))


CARRIER = LiteLLM()


@quantity(
    "tpm_concurrency",
    unit="count",
    formula="max(1, int(tpm / 1000 x 6))",
    source="litellm==1.110.2:litellm/utils.py#L6350-6390",
)
def tpm_concurrency(tpm: int) -> int:
    """Requests in flight that LiteLLM takes a rate of tokens per minute for."""
    about = system("litellm")
    return max(1, tpm * int(about["tpm_factor"]) // int(about["tpm_divisor"]))


@quantity("promised_window", unit="tokens", formula="input + output", source="model_info of a deployment")
def promised_window(input_tokens: int, output_tokens: int) -> int:
    """The window that input and output limits together promise."""
    return input_tokens + output_tokens


def is_config(node: Map) -> bool:
    """A list of models with their parameters: no other file of ours is written so."""
    listed = node.list("model_list")
    return listed is not None and any("litellm_params" in each or "model_name" in each for each in listed.maps())


@dataclass(frozen=True, slots=True)
class _Proxy:
    around: Around
    root: Map
    settings: Mapping[str, Value[Any]] = field(default_factory=dict)
    enforced: bool = False

    def filled(self, text: Text | None) -> Text | None:
        """`os.environ/NAME`, a variable of the proxy's process."""
        if text is None or not text.value.startswith(ENVIRONMENT):
            return text
        name = text.value.removeprefix(ENVIRONMENT)
        value = self.root.text("environment_variables", name) or self.around.env.get(name)
        return value.seen_from(text.span) if value is not None else text


def config(root: Map, around: Around) -> Iterator[Finding]:
    """Everything that a proxy's configuration holds, from whatever document it was read."""
    router = root.map("router_settings")
    checked = truth(router.get("enable_pre_call_checks") if router else None)
    proxy = _Proxy(around, root, _settings(root, around), checked)
    yield from _unread_keys(root)
    for entry in (root.list("model_list") or List((), root.span)).maps():
        found = _deployment(proxy, entry)
        if found is not None:
            yield found


def _settings(root: Map, around: Around) -> dict[str, Value[Any]]:
    about = system("litellm")
    origin = Default("litellm", (), "--port")
    found: dict[str, Value[Any]] = {"port": Fact(around.ports[0] if around.ports else about["port"], origin)}
    if around.hosts:
        found["hosts"] = Fact(around.hosts, Written(root.span))
    if around.copies is not None:
        found["copies"] = around.copies
    general = root.map("general_settings")
    for key, name in (("max_parallel_requests", "key_limit"), ("global_max_parallel_requests", "process_limit")):
        value = count_of(general.get(key) if general is not None else None, key, f"a literal {key}")
        if value is not None:
            found[name] = value
    tenants = next(_tenants(root), None)
    if tenants is not None:
        found["tenants"] = Fact(tenants.value, Written(tenants.span))
    return found


def _tenants(root: Map) -> Iterator[Scalar]:
    """Keys that say that callers of several keys or teams share the proxy."""
    for section, names in system("litellm")["tenant_keys"].items():
        entries = (root.map(section) or Map((), root.span)).entry
        yield from (entry.key for name in names if (entry := entries(name)) is not None)


def _deployment(proxy: _Proxy, entry: Map) -> Admission | None:
    params = entry.map("litellm_params") or Map((), entry.span)
    name = entry.scalar("model_name")
    if name is None:
        return None
    limit, key = _limit(params, proxy.root)
    settings = {**proxy.settings, **_fallbacks(proxy.root, name.value)}
    if key is not None:
        settings["limit_key"] = Fact(key.value, Written(key.span))
    address = proxy.filled(params.text("api_base") or params.text("base_url"))
    model = proxy.filled(params.text("model"))
    if model is not None and model.known:
        settings["model"] = Fact(model.value, Written(model.span, model.via))
    if "cache_salt" in (params.map("extra_body") or Map((), entry.span)):
        settings["salted"] = Fact(True, Written(entry.span))
    target = endpoint(address, _names(model))
    if address is not None and target is None:
        settings["api_base"] = Unknown("api_base", "the address is filled in elsewhere", "a literal api_base")
    info = entry.map("model_info")
    keys = ("max_input_tokens", "max_output_tokens", "max_tokens")
    return Admission(
        id="",
        system="litellm",
        unit=proxy.around.unit,
        name=name.value,
        place=name.span,
        limit=limit,
        per="deployment",
        excess="reject",
        target=served.reached(target, proxy.around),
        names=(name.value,),
        promises=(*_promises(info, keys, proxy.enforced), *_asked(params)),
        settings=settings,
    )


def _limit(params: Map, root: Map) -> tuple[Value[int] | None, Scalar | None]:
    """The limit of requests in flight, and the key that it comes from."""
    for name in ("max_parallel_requests", "rpm", "tpm"):
        entry = params.entry(name)
        value = count_of(entry.value if entry else None, name, f"a literal {name}")
        if entry is None or value is None or (isinstance(value, Fact) and value.value == 0):
            continue
        return (tpm_concurrency(value) if name == "tpm" else value), entry.key
    router = root.map("router_settings")
    entry = router.entry("default_max_parallel_requests") if router is not None else None
    value = count_of(entry.value if entry else None, "max_parallel_requests", "a literal default_max_parallel_requests")
    return value, entry.key if entry is not None and value is not None else None


def _names(model: Text | None) -> tuple[str, ...]:
    if model is None or not model.known:
        return ()
    provider, slash, rest = model.value.partition("/")
    if not slash:
        return (model.value,)
    return (rest,) if provider in system("litellm")["providers"] else (model.value, rest)


def _promises(info: Map | None, keys: tuple[str, str, str], enforced: bool) -> Iterator[Promise]:
    """Input is enforced where the router checks before it calls; output is told to clients."""
    if info is None:
        return
    by = f"LiteLLM {keys[0]}"
    taken = count_of(info.get(keys[0]), keys[0], f"a literal {keys[0]}")
    given = count_of(info.get(keys[1]) or info.get(keys[2]), keys[1], f"a literal {keys[1]}")
    if isinstance(taken, Fact):
        yield Promise("input", taken, enforced, by)
    if isinstance(given, Fact):
        yield Promise("output", given, False, f"LiteLLM {keys[1]}")
    if isinstance(taken, Fact) and isinstance(given, Fact):
        total = promised_window(taken, given)
        if isinstance(total, Fact):
            yield Promise("total", total, enforced, by)


def _asked(params: Map) -> Iterator[Promise]:
    """The answer that is asked for with every request that does not ask for one itself."""
    for key in ("max_tokens", "max_completion_tokens"):
        tokens = count_of(params.get(key), key, f"a literal {key}")
        if isinstance(tokens, Fact) and tokens.value > 0:
            yield Promise("output", tokens, True, f"LiteLLM {key}")


def _fallbacks(root: Map, name: str) -> dict[str, Value[Any]]:
    """The models that a model falls back to, under either of the places that hold them."""
    found: dict[str, Value[Any]] = {}
    for place in ("litellm_settings", "router_settings"):
        section = root.map(place)
        for key in _FALLBACKS if section is not None else ():
            for each in (section.list(key) or List((), root.span)).maps() if section is not None else ():
                listed = each.list(name)
                names = [item for item in listed if isinstance(item, Scalar)] if listed is not None else []
                if names:
                    found[key] = Fact(tuple(item.value for item in names), Written(names[0].span))
    return found


def _unread_keys(root: Map) -> Iterator[Problem]:
    """Keys that read like a limit where nothing reads them: the loader takes any key without a word."""
    about = system("litellm")
    for section, known in (
        ("router_settings", "router_keys"),
        ("litellm_settings", "settings_keys"),
        ("general_settings", "general_keys"),
    ):
        yield from _unread(root.map(section), about[known], section)
    for entry in (root.list("model_list") or List((), root.span)).maps():
        yield from _unread(entry, about["entry_keys"], "model_list[]")
        yield from _unread(entry.map("litellm_params"), about["param_keys"], "litellm_params")
        yield from _unread(entry.map("model_info"), about["info_keys"], "model_info")


def _unread(section: Map | None, known: list[str], where: str) -> Iterator[Problem]:
    for entry in section or ():
        folded = entry.key.value.lower().replace("_", "").replace("-", "")
        if (
            entry.key.value in known
            or not entry.key.text.known
            or not _LIMIT.search(folded)
            or not is_number(entry.value)
        ):
            continue
        yield _unread_key(entry, folded, known, where)


def _unread_key(entry: Entry, folded: str, known: list[str], where: str) -> Problem:
    from difflib import get_close_matches

    meant = system("litellm")["meant"].get(folded)
    if meant is None or meant.partition(".")[0] == where:
        near = get_close_matches(entry.key.value, known, n=1, cutoff=0.75)
        meant = near[0] if near else meant
    data = {"engine": "litellm", "flag": entry.key.value, "expected": where, "suggestion": meant}
    told = "what stands in model_info is shown to clients, which may read it" if where == "model_info" else None
    return Problem("admission-ineffective", entry.key.span, data, doubt=told)


def objects(item: Item, cluster: Cluster) -> Iterator[Finding]:
    """A LiteLLMModel: one deployment, its keys in camel case."""
    root = item.node
    assert isinstance(root, Map)
    spec = root.map("spec")
    name = (spec.scalar("modelName") if spec is not None else None) or root.scalar("metadata", "name")
    if spec is None or name is None:
        return
    params = spec.map("params") or Map((), spec.span)
    keys = ("maxInputTokens", "maxOutputTokens", "maxTokens")
    yield Admission(
        id="",
        system="litellm",
        unit=unit(item),
        name=name.value,
        place=name.span,
        limit=_operator_limit(params),
        per="deployment",
        excess="reject",
        target=endpoint(params.text("apiBase"), _names(params.text("model"))),
        names=(name.value,),
        promises=tuple(_promises(spec.map("info"), keys, False)),
    )


def _operator_limit(params: Map) -> Value[int] | None:
    for names in (("maxParallelRequests", "max_parallel_requests"), ("rpm",), ("tpm",)):
        for node in _either(params, names):
            value = count_of(node, names[0], f"a literal {names[0]}")
            if value is not None:
                return tpm_concurrency(value) if names == ("tpm",) else value
    return None


def _either(params: Map, names: tuple[str, ...]) -> Iterator[Node]:
    """The key itself, or under `additional`, which is handed on as it stands."""
    for name in names:
        for path in ((name,), ("additional", name)):
            node = params.get(*path)
            if node is not None:
                yield node
