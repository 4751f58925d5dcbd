"""Every address of the API that answers a question; a new resource is one file and one entry here."""

from gpulse.api import (
    accounts,
    audit,
    checks,
    free,
    get_status,
    gpus,
    health,
    history,
    ingest,
    me,
    metrics,
    nodes,
    people,
    signing_in,
)

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
    *signing_in.ENDPOINTS,
    *me.ENDPOINTS,
    *accounts.ENDPOINTS,
    *audit.ENDPOINTS,
)
