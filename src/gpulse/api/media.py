"""In which media type to answer: the one the reader likes best of those there are."""

from collections.abc import Sequence

from gpulse.errors import RequestError


def choose(accepted: str, offered: Sequence[str]) -> str:
    """One of `offered`, by an Accept header; the first where it does not matter. RequestError where none will do."""
    weights = _weights(accepted)
    best, chosen = 0.0, None
    for media in offered:
        kind = media.split(";")[0].strip()
        named = [one for one in (kind, kind.split("/", maxsplit=1)[0] + "/*", "*/*") if one in weights]
        if named and weights[named[0]] > best:
            best, chosen = weights[named[0]], media
    if chosen is None:
        kinds = " or ".join(media.split(";")[0] for media in offered)
        raise RequestError(
            406,
            "not_acceptable",
            f"this address answers in {kinds}, the request accepts only {accepted[:100]}",
            f"send Accept: {offered[0].split(';')[0]}",
        )
    return chosen


def _weights(accepted: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in accepted.split(","):
        kind, *parameters = [word.strip().lower() for word in part.split(";")]
        weight = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                weight = _number(value)
        # An empty header says nothing, so anything will do.
        kind = kind or "*/*"
        weights[kind] = max(weight, weights.get(kind, 0.0))
    return weights


def _number(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 0.0 <= weight <= 1.0 else 1.0
