"""The query of the live stream's address."""

from starlette.datastructures import QueryParams

from gpulse.api.live import LiveQuery
from gpulse.api.queries import read_query
from gpulse.errors import RequestError
from gpulse.fleet.sight import Sight

SEEDS = [b"q=free&me=alice&format=json&limit=10", b"format=binary", b"limit=-1&q=%ff%00"]
WORDS = ["limit=", "format=", "&q=", "%", "me="]


def fuzz(data: bytes) -> None:
    try:
        query = read_query(LiveQuery, QueryParams(data.decode("latin-1")))
        query.filter(Sight("anonymous"))
    except RequestError as refused:
        assert refused.message
        assert 400 <= refused.status < 500
        return
    assert 1 <= query.limit <= 1000
