"""One file for each decoder: `fuzz` takes any bytes and fails where the decoder does more than refuse them in words.

SEEDS are inputs to begin with, WORDS what is worth trying to put in.
"""

TARGETS = (
    "body",
    "certificate",
    "comments_file",
    "config",
    "consul",
    "dns",
    "dropped",
    "filter",
    "fleet_lines",
    "fleet_updates",
    "frames_in",
    "gpustat",
    "host_file",
    "hosts",
    "hub_answer",
    "ini_file",
    "late_lines",
    "live_query",
    "node_names",
    "nvidia_smi",
    "pushed",
    "request",
    "token_text",
    "websocket",
    "when",
)
