"""The filter language of the page, the API and the command line: words in, terms out, each of which must hold."""

from collections.abc import Sequence
from typing import NamedTuple

from gpulse.errors import FilterError
from gpulse.fleet.node_sets import check_size
from gpulse.fleet.sight import FULL, Sight
from gpulse.fleet.terms import Term, keyed, plain
from gpulse.fleet.views import GPU_STATES

# The budget of one question, beside the time it may take: characters, terms, and nodes that are named.
LONGEST = 500
MOST_TERMS = 32


class Filter(NamedTuple):
    """What a text asks for; search.py goes through the fleet with it."""

    terms: Sequence[Term]
    # A card split into MIG instances is neither free nor not free: its instances are.
    about_states: bool


class _Token(NamedTuple):
    text: str
    # Where the first quote stood: what comes before it may be a key, the rest is text.
    quoted_from: int | None


def parse(text: str, me: str | None = None, sight: Sight = FULL) -> Filter:
    """Read a filter; `me` is who `mine` and `reserved:me` stand for. It finds nothing by what `sight` hides.

    Raises FilterError in words that name what is wrong.
    """
    if len(text) > LONGEST:
        raise FilterError(f"the filter has {len(text)} characters; at most {LONGEST} are allowed")
    terms: dict[tuple[bool, str, bool], Term] = {}
    about_states = False
    for written in _tokens(text):
        negated = written.text.startswith("-") and written.quoted_from != 0
        token = written
        if negated:
            token = _Token(written.text[1:], None if written.quoted_from is None else written.quoted_from - 1)
        if not token.text:
            raise FilterError('the filter has "-" with nothing behind it; put a word there: -free, -user:alice')
        about_states = about_states or _is_state(token)
        head = token.text if token.quoted_from is None else token.text[: token.quoted_from]
        with_key = keyed(token.text, head, me, sight)
        term = with_key or plain(token.text, token.quoted_from is not None, me, sight)
        # A term that is written twice is looked for once.
        terms[negated, token.text, with_key is not None or token.quoted_from is None] = term._replace(negated=negated)
    if len(terms) > MOST_TERMS:
        raise FilterError(f"the filter has {len(terms)} terms; at most {MOST_TERMS} are allowed")
    check_size(sum(term.names for term in terms.values()), text)
    return Filter(list(terms.values()), about_states)


def _is_state(token: _Token) -> bool:
    return token.text.startswith("state:") or (token.quoted_from is None and token.text in GPU_STATES)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    current: list[str] = []
    quoted_from: int | None = None
    quote = False
    for character in text.casefold() + " ":
        if character == '"':
            quote = not quote
            quoted_from = len(current) if quoted_from is None else quoted_from
        elif character.isspace() and not quote:
            if current:
                tokens.append(_Token("".join(current), quoted_from))
            current, quoted_from = [], None
        else:
            current.append(character)
    if quote:
        raise FilterError(f'the filter has a quote that is not closed: "{"".join(current).strip()}; add a "')
    return tokens
