"""A container's words and environment as the kubelet gives them to its process."""

from __future__ import annotations

from collections.abc import Mapping

from kvlint.carriers.base import Item, hidden
from kvlint.carriers.kubernetes.cluster import Cluster
from kvlint.command import Opening
from kvlint.formats.shell import kubelet_expand
from kvlint.patterns import regex
from kvlint.source import Text
from kvlint.tree import List, Map, Opaque, Scalar

# What a pod's `fieldRef` gives without a blank in it (its annotations are free text).
_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"),
)
# `${X}` where no shell runs: envsubst or a GitOps controller fills it in before the file is applied.
_UNRENDERED = regex(
    r"(?<!\$)\$(?:\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::?[-=?+][^{}]*)?\}|\((?P<variable>[A-Za-z_][A-Za-z0-9_.-]*)\))"
)


def unrendered(text: Text) -> Text:
    """The text with `${X}` as holes: outside a shell nobody expands it, so a template is meant.

    A `$(X)` that the container's own variables leave is set by a controller, a webhook or an `envFrom` out of view.
    """
    if "${" not in text.value and "$(" not in text.value:
        return text
    parts, at = [], 0
    for match in _UNRENDERED.finditer(text.value):
        name = match["name"] or match["variable"]
        span = text.slice(*match.span()).span
        hole = Text.unknown(span, f"{match[0]} is filled in before this file is applied", f"the value of {name}")
        parts += [text.slice(at, match.start()), hole]
        at = match.end()
    return Text.join((*parts, text.slice(at))) if parts else text


def arguments(node: object, env: Mapping[str, Text]) -> tuple[list[Text], list[Opening]]:
    """The items of `command` or `args` after the kubelet's `$(VAR)`; unseen items are openings."""
    words: list[Text] = []
    openings: list[Opening] = []
    if isinstance(node, Opaque):
        return [], [Opening(0, node.span, node.reason, node.supply)]
    if isinstance(node, Scalar) and node.tag != "null":
        return [kubelet_expand(node.text, env)], []
    if not isinstance(node, List):
        return [], []
    for item in node:
        if isinstance(item, Scalar):
            words.append(kubelet_expand(item.text, env) if item.text.value else item.text)
        else:
            reason = item.reason if isinstance(item, Opaque) else "an argument that is no text"
            openings.append(Opening(len(words), item.span, reason))
    openings += [Opening(len(words), each.span, each.reason, each.supply) for each in node.open]
    return words, openings


def environment(
    container: Map, near: Item, cluster: Cluster, given: Mapping[str, Text] | None = None
) -> tuple[dict[str, Text], list[Opening]]:
    """A container's environment: `envFrom` first, then `env` in order, values after the kubelet's `$(VAR)` of earlier ones."""
    env: dict[str, Text] = dict(given or {})
    open_: list[Opening] = []
    for each in (container.list("envFrom") or List((), container.span)).maps():
        name = each.string("configMapRef", "name")
        data = cluster.config_map(name, near)
        if data is None:
            open_.append(Opening(0, each.span, "an environment that is not in these files"))
            continue
        prefix = each.string("prefix") or ""
        for entry in data:
            if isinstance(entry.value, Scalar):
                env[prefix + entry.key.value] = unrendered(entry.value.text.seen_from(each.span))
    node = container.get("env")
    if isinstance(node, List):
        for variable in node.maps():
            _set(env, variable, near, cluster)
        open_ += [Opening(0, each.span, each.reason, each.supply) for each in node.open]
    elif isinstance(node, Map):
        _set_all(env, node, near, cluster)
    elif (unseen := hidden(container, "env")) is not None:
        open_.append(Opening(0, unseen.span, unseen.reason, unseen.supply))
    return env, open_


def _set(env: dict[str, Text], variable: Map, near: Item, cluster: Cluster) -> None:
    name = variable.string("name")
    if name is None:
        return
    value = variable.text("value")
    env[name] = (
        unrendered(kubelet_expand(value, env)) if value is not None else _value_from(variable, name, near, cluster)
    )


def _set_all(env: dict[str, Text], node: Map, near: Item, cluster: Cluster) -> None:
    """Charts and operators that write `env` as a mapping."""
    for entry in node:
        name, value = entry.key.value, entry.value
        if isinstance(value, Scalar):
            env[name] = unrendered(kubelet_expand(value.text, env)) if value.text.value else value.text
        elif isinstance(value, Map):
            text = value.text("value")
            env[name] = text if text is not None else _value_from(value, name, near, cluster)
        else:
            env[name] = Text.unknown(value.span, "set from elsewhere", f"the value of {name}")


def _value_from(variable: Map, name: str, near: Item, cluster: Cluster) -> Text:
    reference = variable.map("valueFrom", "configMapKeyRef") or variable.map("configMapKeyRef")
    if reference is not None:
        key = reference.string("key")
        data = cluster.config_map(reference.string("name"), near)
        value = data.text(key) if data is not None and key else None
        if value is not None:
            return unrendered(value.seen_from(variable.span))
    if "value" in variable and variable.get("valueFrom") is None and isinstance(variable.get("value"), Scalar):
        return Text("", (), (), variable.span)
    field_ = variable.string("valueFrom", "fieldRef", "fieldPath") or ""
    return Text.unknown(
        variable.span,
        f"{name} is set from a place that is not in these files",
        f"the value of {name}",
        # names and addresses of the pod, never several words
        whole=field_ in _FIELDS or field_.startswith("metadata.labels"),
    )
