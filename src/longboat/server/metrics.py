"""Prometheus metrics of the runtime and of this process. Imported when first requested."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

__all__ = ["CONTENT_TYPE", "render"]


def render(gauges: Mapping[str, float]) -> bytes:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    for name, value in sorted(gauges.items()):
        Gauge(f"longboat_{name}", name.replace("_", " "), registry=registry).set(value)
    return generate_latest(registry)
