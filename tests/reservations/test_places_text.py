"""Places in short."""

import pytest

from gpulse.reservations.model import Place
from gpulse.reservations.places_text import places_text


@pytest.mark.parametrize(
    ("places", "text"),
    [
        (["gpu03:0"], "gpu03:0"),
        (["gpu03:0", "gpu03:1", "gpu03:2", "gpu03:5", "gpu03:7", "gpu03:6"], "gpu03:0-2,5-7"),
        (["gpu03:9", "gpu03:10", "gpu04:0.1", "gpu04:0.2"], "gpu03:9-10 gpu04:0.1,0.2"),
        (["b:0", "a:1"], "a:1 b:0"),
    ],
)
def test_places_in_short(places, text):
    assert places_text(Place(*place.split(":")) for place in places) == text
