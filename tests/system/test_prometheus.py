"""A real Prometheus scrapes a running hub, and answers questions about it."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hub.running import RunningHub
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port
from tests.system.agents import until

CONFIG = """
global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: gpulse
    static_configs:
      - targets: ["{address}"]
"""


class Prometheus:
    """Asks in PromQL."""

    def __init__(self, url: str):
        self.url = url

    def ask(self, query: str) -> list[dict[str, Any]]:
        return self.get("query", query=query)["result"]

    def get(self, path: str, **parameters: str) -> Any:
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=PATIENCE_SECONDS).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def targets(self) -> list[tuple[str, str]]:
        """The health of each, and what was wrong with its last scrape."""
        return [(one["health"], one["lastError"]) for one in self.get("targets")["activeTargets"]]

    def until(self, query: str, seconds: float = PATIENCE_SECONDS) -> list[dict[str, Any]]:
        end = time.monotonic() + seconds
        while True:
            try:
                if found := self.ask(query):
                    return found
            except (httpx.HTTPError, ValueError):
                # It has just been started.
                pass
            if time.monotonic() > end:
                raise AssertionError(f"no answer to {query}; targets: {self.targets()}")
            time.sleep(0.2)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    with RunningHub("demo", "--nodes", "12", directory=tmp_path_factory.mktemp("hub")) as hub:
        hub.until(lambda: hub.get("api/v1/summary")["nodes_up"] == 12)
        yield hub


@pytest.fixture(scope="module")
def prometheus(hub: RunningHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is missing")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(address=hub.url.removeprefix("http://").strip("/")))
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env={**os.environ, "HOME": str(folder)})
        try:
            yield Prometheus(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def value(answer: list[dict[str, Any]]) -> float:
    (only,) = answer
    return float(only["value"][1])


def test_the_hub_is_scraped_without_complaint(prometheus: Prometheus):
    assert value(prometheus.until('up{job="gpulse"} == 1')) == 1
    until(lambda: prometheus.targets() == [("up", "")], 30, lambda: str(prometheus.targets()))
    assert value(prometheus.until("gpulse_hub_ticks_total > 0")) > 0
    metadata = prometheus.get("metadata", metric="gpulse_gpu_power_watts")
    assert metadata["gpulse_gpu_power_watts"][0]["type"] == "gauge"


def test_how_many_gpus_of_a_model_are_free(hub: RunningHub, prometheus: Prometheus):
    summary = hub.get("api/v1/summary")
    assert value(prometheus.until("sum(gpulse_gpus)")) == summary["gpus"]
    models = {one["metric"]["model"] for one in prometheus.ask("sum by (model) (gpulse_gpus)")}
    assert models == {gpu["model"] for gpu in hub.get("api/v1/gpus", limit=1000)["items"] if gpu.get("counted", True)}
    assert prometheus.ask(f'sum(gpulse_gpus{{model="{min(models)}", state="free"}})')


def test_questions_of_the_documentation(prometheus: Prometheus):
    prometheus.until("gpulse_gpu_utilization_ratio")
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    table = text.partition("## Questions")[2].partition("\n## ")[0]
    questions = [line.split(" | ", 1)[1].strip("| `") for line in table.splitlines() if " | `" in line]
    assert len(questions) >= 7
    for question in questions:
        # The pipe of a pattern is escaped in a table.
        prometheus.ask(question.replace("\\|", "|"))
    by_model = prometheus.ask(questions[2])
    assert by_model
    assert all(0 <= float(one["value"][1]) <= 1 for one in by_model)


def test_scrapes_carry_no_people(prometheus: Prometheus):
    prometheus.until("gpulse_node_up")
    names = set(prometheus.get("labels"))
    # job and instance are Prometheus' own.
    assert not names & {"user", "person", "pid", "command"}
