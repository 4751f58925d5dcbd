"""Query parameters: declared as structs, read from the address, refused in words."""

import re
import typing
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.datastructures import QueryParams

from gpulse.errors import FilterError, RequestError
from gpulse.fleet.filter import LONGEST, Filter, parse
from gpulse.fleet.sight import Level, Sight

LIMIT_MOST = 1000

FilterText = Annotated[
    str, Meta(max_length=LONGEST, description="Filter, as in `free model:H100 mem>40G -user:alice`.")
]
Me = Annotated[str, Meta(max_length=200, description="Who `mine` in the filter stands for.")]
Limit = Annotated[int, Meta(ge=1, le=LIMIT_MOST, description="How many to tell of at most.")]
Offset = Annotated[int, Meta(ge=0, le=10_000_000, description="How many to leave out; `next` of the answer before.")]


WantedSight = Annotated[
    Level,
    Meta(description="No more of anybody than strangers see at this level; never more than you see without it."),
]


class NoQuery(msgspec.Struct, frozen=True):
    """Takes no parameters."""


class OfPeople(msgspec.Struct, frozen=True, kw_only=True):
    """What tells of people; whoever reads the query lowers the sight by it."""

    sight: WantedSight | UnsetType = UNSET


class Filtered(OfPeople, frozen=True, kw_only=True):
    """What can be filtered."""

    q: FilterText = ""
    me: Me = ""

    def filter(self, sight: Sight) -> Filter:
        """It finds nothing by what `sight` hides: how many match would tell."""
        try:
            return parse(self.q, self.me or None, sight)
        except FilterError as error:
            raise RequestError(422, "bad_filter", str(error), "docs/api.md describes the filter language") from None


class Paged(Filtered, frozen=True, kw_only=True):
    """What comes in pages."""

    limit: Limit = 100
    offset: Offset = 0


class Lenient(msgspec.Struct, frozen=True, kw_only=True):
    """What others put into the address: parameters that are not known here are left out."""


Q = TypeVar("Q", bound=msgspec.Struct)


def as_person(query: Q, name: str | None) -> Q:
    """`mine` is what who is signed in holds, where the query does not say another name."""
    if name is None or not isinstance(query, Filtered) or query.me or "mine" not in query.q.casefold():
        return query
    return msgspec.structs.replace(query, me=name)


def read_query(wanted: type[Q], given: QueryParams) -> Q:
    """The parameters as their struct; RequestError names the first that is wrong."""
    # A parameter may have a name that Python keeps for itself.
    allowed = wanted.__struct_encode_fields__
    values: dict[str, Any] = {}
    for name, value in given.multi_items():
        if name not in allowed and issubclass(wanted, Lenient):
            continue
        if name not in allowed:
            can = f"allowed are {', '.join(allowed)}" if allowed else "this address takes none"
            raise RequestError(400, "unknown_parameter", f'there is no parameter "{name[:100]}" here', can)
        if name in values:
            raise RequestError(400, "repeated_parameter", f'parameter "{name}" is given twice', "give it once")
        values[name] = value
    hints = typing.get_type_hints(wanted)
    fields = dict(zip(allowed, wanted.__struct_fields__, strict=True))
    for name, value in values.items():
        kinds = (hints[fields[name]], *typing.get_args(hints[fields[name]]))
        values[name] = _read(value, kinds)
        try:
            msgspec.convert({name: values[name]}, wanted)
        except msgspec.ValidationError as error:
            reason = str(error).split(" - at ")[0]
            raise RequestError(
                400, "bad_parameter", f'parameter "{name}" cannot be "{value[:100]}"', f"{reason}; see api/docs"
            ) from None
    for field in msgspec.structs.fields(wanted):
        if field.required and field.encode_name not in values:
            raise RequestError(400, "missing_parameter", f'parameter "{field.encode_name}" is missing', "see api/docs")
    return msgspec.convert(values, wanted)


def _read(text: str, kinds: tuple[Any, ...]) -> Any:
    if float in kinds:
        return _decimal(text)
    return _number(text) if int in kinds else _flag(text) if bool in kinds else text


def _decimal(text: str) -> float | str:
    return float(text) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,9})?", text, re.ASCII) else text


def _number(text: str) -> int | str:
    # int() alone takes "1_000", " 1" and other scripts' digits.
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20 else text


def _flag(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text, text)
