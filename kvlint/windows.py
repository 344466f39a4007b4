"""The window of servers that have none of their own (contract: `window`), and where its value comes from."""

from __future__ import annotations

from typing import Any

from kvlint.coefficients import Coefficients
from kvlint.facts import Assumed, Derived, Fact, Range, Unknown, Value, Written, nominal, quantity
from kvlint.links import Link, largest_promise
from kvlint.subjects import Server


@quantity(
    "window",
    unit="tokens",
    formula="least_useful_window … model_window",
    source="contract: window of MLX servers, case 3",
)
def open_window(least_useful_window: int, model_window: int) -> Range:
    """Nothing states a window: between the shortest useful one and what the model's positions allow."""
    low = min(least_useful_window, model_window)
    return Range(low, low, model_window)


def settle(server: Server, links: list[Link], coefficients: Coefficients) -> None:
    """Write `window` into the settings of a server whose engine has none, and beside one of its own what is promised for it."""
    answer = _longest_answer(links)
    if answer is not None:
        server.settings["sent_output"] = answer
    if "window" in server.settings:
        reaching = largest_promise(link for link in links if not link.supposed)
        if reaching is not None:
            server.settings["promised_window"] = reaching.promise.tokens
        return
    server.settings.setdefault("window_kind", Fact("none", Assumed(f"{server.engine} has no window of its own")))
    window = server.settings["window"] = _window(server, links, coefficients)
    server.settings["window_stated"] = Fact(stated(window), window.origin) if isinstance(window, Fact) else window
    if stated(window):
        server.settings["promised_window"] = window


def _longest_answer(links: list[Link]) -> Fact[int] | None:
    """The longest answer that a front of the server asks for with its requests; what is only told to clients is not meant."""
    hops = (hop for link in links if not link.supposed for hop in link.hops)
    sent = [each.tokens for hop in hops for each in hop.promises if each.kind == "output" and each.enforced]
    return max(sent, key=lambda tokens: tokens.value, default=None)


def _window(server: Server, links: list[Link], coefficients: Coefficients) -> Value[Any]:
    declared = server.settings.get("declared_window")
    if declared is not None:
        return declared
    proven = largest_promise(link for link in links if not link.supposed)
    reaching = proven or largest_promise(links)
    if reaching is not None:
        tokens = reaching.promise.tokens
        return tokens if proven is not None and reaching.promise.enforced else claimed(tokens)
    longest = server.settings.get("model_window")
    if longest is None or isinstance(longest, Unknown):
        return Unknown("window", "nothing promises a window", "declare [[workload]] window in kvlint.toml")
    return open_window(coefficients.get("least_useful_window"), longest)


def claimed(fact: Fact[Any]) -> Fact[Any]:
    """The same value, whose written leaves nothing enforces."""
    return doubted(fact, "claimed")


def doubted(fact: Fact[Any], doubt: str) -> Fact[Any]:
    """The same value, with a doubt in its written leaves."""
    origin = fact.origin
    if isinstance(origin, Written):
        return Fact(fact.value, Written(origin.span, origin.via, doubt))
    if isinstance(origin, Derived):
        inputs = tuple((name, doubted(each, doubt)) for name, each in origin.inputs)
        return Fact(fact.value, Derived(origin.quantity, inputs))
    return fact


def stated(window: Value[Any]) -> bool:
    """Whether somebody stated the window; an open range is nobody's statement."""
    return isinstance(window, Fact) and nominal(window.value) == window.value
