"""The kinds of value that several settings share; a description says what is allowed, in the words of an error."""

from typing import Annotated

from msgspec import Meta

Port = Annotated[int, Meta(ge=1, le=65535, description="a port, 1 to 65535")]
Word = Annotated[str, Meta(min_length=1, description="text that is not empty")]
Interval = Annotated[float, Meta(ge=0.1, le=3600, description="seconds, 0.1 to 3600")]
Seconds = Annotated[float, Meta(ge=0, le=604800, description="seconds, 0 to 604800 (a week)")]
Deadline = Annotated[float, Meta(ge=1, le=600, description="seconds, 1 to 600")]
Ratio = Annotated[float, Meta(ge=0, le=1, description="a ratio, 0 to 1")]
Origin = Annotated[
    str,
    Meta(
        pattern=r"^https?://([\w.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?\Z",
        description='a site such as "https://portal.example.org", without a path',
    ),
]
Bytes = Annotated[int, Meta(ge=0, le=2**60, description='bytes, or text such as "256MiB" or "1GB"')]
