"""What a server counts, in the text format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Meters:
    """Counters of one server, apart from those of the process that it runs in."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "attcem_requests", "Inference requests by outcome.", ["protocol", "code"], registry=self.registry
        )
        self.seconds = self.histogram("attcem_request_seconds", "From a request's headers to its reply.", SECONDS)
        self.computing = self.histogram("attcem_compute_seconds", "One run of the cloud's half.", SECONDS)
        self.rows = self.histogram("attcem_batch_pictures", "Pictures computed together.", ROWS)
        self.places = Gauge("attcem_requests_in_flight", "Requests that are being served.", registry=self.registry)

    def histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)

    def computed(self, rows: int, seconds: float) -> None:
        self.rows.observe(rows)
        self.computing.observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)
