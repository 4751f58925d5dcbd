"""Every address of the API that answers a question; a new resource is one file and one entry here."""

from gpulse.api import checks, free, get_status, gpus, health, history, ingest, metrics, nodes, people

ENDPOINTS = (
    *nodes.ENDPOINTS,
    *checks.ENDPOINTS,
    *gpus.ENDPOINTS,
    *people.ENDPOINTS,
    *history.ENDPOINTS,
    *free.ENDPOINTS,
    *health.ENDPOINTS,
    *metrics.ENDPOINTS,
    *get_status.ENDPOINTS,
    *ingest.ENDPOINTS,
)
