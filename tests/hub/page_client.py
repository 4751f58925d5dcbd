"""What a page of the hub does, over HTTP alone: it keeps the cookie, and sends the key of its session along."""

from typing import Any

import httpx

from tests.patience import PATIENCE_SECONDS

SIGNED_IN = "#/signed-in/"


class PageClient(httpx.Client):
    """A browser of its own, with nobody signed in; `url` is where the hub's page is."""

    def __init__(self, url: str):
        super().__init__(base_url=url, headers={"Origin": url.rstrip("/"), "X-Gpulse": "1"}, timeout=PATIENCE_SECONDS)

    @property
    def page_key(self) -> str:
        return self.headers["X-Gpulse"]

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        response = super().send(request, **options)
        told = page_key_of(response)
        if told is not None:
            self.headers["X-Gpulse"] = told
        return response


def page_key_of(response: httpx.Response) -> str | None:
    """The key that the answer to a sign-in tells, in its body or for the way back from single sign-on."""
    location = response.headers.get("location", "")
    if SIGNED_IN in location:
        return location.partition(SIGNED_IN)[2]
    if response.request.method != "POST" or not response.is_success or "/session" not in response.request.url.path:
        return None
    return response.json()["page_key"]
