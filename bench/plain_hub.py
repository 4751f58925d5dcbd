"""The hub without its shortcut for nodes' connections: uvicorn's own WebSocket, a task each; for bench.ingest --plain.

python -m bench.plain_hub up …
"""

from starlette.websockets import WebSocket

from gpulse.api import application, ingest
from gpulse.cli import main


class PlainLine:
    """Keeps what is to be said until the connection's task gets to it."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.last: tuple[int, str] | None = None

    def send(self, text: str) -> None:
        self.texts.append(text)

    def close(self, code: int, reason: str) -> None:
        self.last = (code, reason)


async def serve(self: ingest.Lines, websocket: WebSocket) -> None:
    token = await ingest.admit_node(self._hub, websocket.headers)
    assert self._hub.ingest
    instance = websocket.query_params["instance"]
    self._hub.ingest.push.admit(token.node, instance)
    await websocket.accept()
    line = PlainLine()
    connection = self._hub.ingest.push.connect(token, instance, "127.0.0.1", line)
    for text in line.texts:
        await websocket.send_text(text)
    while line.last is None:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            connection.gone(1006, "")
            return
        connection.binary(message["bytes"])
    await websocket.close(*line.last)


if __name__ == "__main__":
    application.SERVER_OPTIONS["ws"] = "websockets-sansio"
    ingest.Lines.serve = serve  # type: ignore[method-assign] # that is what this file is for
    main()
