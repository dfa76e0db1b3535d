"""Prometheus metrics of the runtime and of this process. Imported when first requested."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

__all__ = ["CONTENT_TYPE", "render"]


def render(gauges: Mapping[str, float], *, node: str = "") -> bytes:
    """`node`: the name of this server in its cluster, a label of all its gauges."""
    registry = CollectorRegistry()
    labels = {"node": node} if node else {}
    ProcessCollector(registry=registry)
    for name, value in sorted(gauges.items()):
        gauge = Gauge(f"longboat_{name}", name.replace("_", " "), tuple(labels), registry=registry)
        (gauge.labels(**labels) if labels else gauge).set(value)
    return generate_latest(registry)
