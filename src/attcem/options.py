"""What each command can be told on the command line; light, for help imports it."""

import argparse
from typing import Any

from attcem.config import GRANTS
from attcem.language import LANGUAGES
from attcem.listing import LISTS

DEVICE = "where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:1 (default: auto)"

Option = tuple[tuple[str, ...], dict[str, Any]]  # the arguments of `add_argument`


def option(*names: str, **settings: Any) -> Option:
    return names, settings


def device(default: str | None = None) -> Option:
    """The option of every command that computes; without default, a file's `train.device` comes before auto."""
    return option("--device", default=default, help=DEVICE)


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def port(text: str) -> int:
    if not 0 <= int(text) < 2**16:
        raise ValueError
    return int(text)


def rate(text: str) -> float:
    if not 0 < float(text) < float("inf"):
        raise ValueError
    return float(text)


def share(text: str) -> float:
    if not 0 <= float(text) <= 1:
        raise ValueError
    return float(text)


RUN = option("run", help="a run's folder")
RUNS = option("runs", nargs="+", help="run folders, or folders of them")
ATTACKS_AT_A_TIME = option(
    "--jobs", type=positive, help="attacks at a time, each on its share of the cores (default: as many as pay)"
)
LANGUAGE = option("--lang", choices=list(LANGUAGES), default="en", help="what it is written in (default: en)")
RANGE: Any = {"nargs": 3, "action": "append", "default": [], "metavar": ("KEY", "LOW", "HIGH")}

OPTIONS: dict[str, list[Option]] = {
    "demo": [option("--out", default="runs/demo", help="folder for the runs and report.html"), device("auto")],
    "list": [option("list", nargs="?", choices=list(LISTS), help="everything if not given")],
    "run": [
        option("--out", help="where to put the run (default: runs/, named by its settings)"),
        option("--resume", action="store_true", help="continue an interrupted run; a finished one is only read"),
        ATTACKS_AT_A_TIME,
        device(),
    ],
    "sweep": [
        option("file", help="a grid in YAML, or one of `attcem list sweeps`; --key value sets any setting"),
        option("--seeds", type=int, nargs="+", help="a run for each of them (default: the file's)"),
        option("--quick", action="store_true", help="the file's short form: its shortcuts, and its first seed alone"),
        option("--engine", choices=["local", "ray"], default="local", help="default: local"),
        option("--address", help="a Ray cluster (default: this machine)"),
        option("--jobs", type=positive, help="runs at a time (default: one per core)"),
        option("--out", help="folder for the runs (default: runs/ and the file's name)"),
        option("--resume", action="store_true", help="complete what is missing"),
        device(),
        option("--dry-run", action="store_true", help="check everything and list the runs"),
    ],
    "tune": [
        option("base", help="a file or preset to start from; --key value sets any setting"),
        option("--range", **RANGE),
        option("--log-range", **RANGE),
        option("--choice", nargs="+", action="append", default=[], metavar="KEY VALUE"),
        option("--trials", type=positive, default=20, help="of all processes together (default: 20)"),
        option("--at-accuracy", type=float, help="print only what hides most at this validation accuracy"),
        option("--seed", type=int, default=0, help="the search's seed (default: 0)"),
        device(),
        option("--out", help="folder for the study, shared by all processes (default: runs/tune-…)"),
    ],
    "cut": [
        option("base", help="a file or preset: its network, data and defence; --key value sets any setting"),
        option("--cuts", type=positive, nargs="+", help="units on the device (default: every number of them)"),
        option(
            "--forms",
            nargs="+",
            metavar="FORM",
            help="what may cross: plain, a name of `attcem list crossings`, or one with options, as in "
            "'{pool: {size: 4}}' (default: plain and each of them)",
        ),
        option("--seeds", type=int, nargs="+", default=[0], help="a run of each place for each of them (default: 0)"),
        option("--suite", default="glance", help="who attacks validation images (default: glance, one decoder)"),
        option("--lose", type=share, default=0.02, help="accuracy that may be lost against the best (default: 0.02)"),
        option("--compute", type=rate, default=float("inf"), help="most multiplications, as a share (default: any)"),
        option("--jobs", type=positive, help="runs at a time (default: one per core)"),
        option("--out", help="folder for the runs and the picture (default: runs/cut-…)"),
        device(),
        option("--dry-run", action="store_true", help="list the places, and what does not fit where"),
    ],
    "audit": [
        option("run", help="a run's folder, or an artifact: then the shipped files are attacked"),
        option("--suite", help="see `attcem list suites`"),
        option("--threat", choices=list(GRANTS), help="what the attacker has (default: the run's)"),
        option("--images", type=int, help="test images to reconstruct"),
        option("--seed", type=int, help="the attacker's seed"),
        device("auto"),
        ATTACKS_AT_A_TIME,
    ],
    "export": [
        RUN,
        option("--out", default="artifact", help="the folder to write to (default: artifact)"),
        option("--triton", metavar="DIR", help="also a model repository for Triton or KServe"),
    ],
    "explain": [
        RUN,
        option("--images", type=int, default=1000, help="validation images to look at (default: 1000)"),
        device("auto"),
        option("--tsne", action="store_true", help="also draw neighbourhoods (needs scikit-learn)"),
    ],
    "report": [
        RUNS,
        option("--out", default="report.html", help="the page to write"),
        LANGUAGE,
        option("--live", action="store_true", help="serve it on this machine while runs go on, instead"),
        option("--port", type=port, default=8765, help="of --live; 0 takes any free one (default: 8765)"),
    ],
    "figures": [
        RUNS,
        option("--out", default="figures", help="the folder to write to (default: figures)"),
        option("--format", nargs="+", choices=["png", "pdf"], default=["png", "pdf"], help="default: both"),
        option("--at-accuracy", type=float, help="which strengths to show (default: the highest all reach)"),
    ],
    "slides": [
        RUNS,
        option("--out", default="talk.pptx", help="the presentation to write (default: talk.pptx)"),
        LANGUAGE,
        option("--at-accuracy", type=float, help="accuracy to compare at (default: the highest all reach)"),
    ],
    "compare": [
        RUNS,
        option("--at-accuracy", type=float, help="accuracy to compare at (default: the highest all reach)"),
        option("--metric", choices=["mse", "ssim", "psnr"], default="mse", help="default: mse"),
        option("--against", metavar="NAME", help="the reference defence (default: noise, or the first)"),
        option("--format", choices=["text", "markdown", "latex", "csv", "json"], default="text", help="default: text"),
    ],
    "table": [
        RUNS,
        option("--columns", nargs="+", metavar="NAME", help="only these, in this order (default: every one)"),
        option("--format", choices=["text", "markdown", "latex", "csv"], default="text", help="default: text"),
    ],
    "check": [
        option(
            "runs", nargs="+", help="run folders, folders of them, or artifacts; seeds of one setting count together"
        ),
        option("--max-ssim", type=float, help="of the worst case"),
        option("--min-mse", type=float, help="of the worst case"),
        option("--min-mse-ratio", type=float, help="worst case over the mean image, a free guess; 1 hides everything"),
        option("--max-rank1", type=float, help="share of pictures that the worst case finds among all"),
        option("--max-recon-acc", type=float, help="share of reconstructions whose class a classifier names"),
        option("--min-accuracy", type=float, help="on what is released"),
        option("--suite", help="the attacks that the audit must have run (default: any)"),
        option(
            "--allow-flags",
            nargs="+",
            default=[],
            metavar="N|TEXT",
            help="so many flags of a run, or those with this text",
        ),
        option("--junit", metavar="FILE", help="also write JUnit XML"),
        option("--json", metavar="FILE", help="also write JSON"),
    ],
    "send": [
        option("artifact", help="a folder from `attcem export`"),
        option("images", nargs="*", help="PNG or JPEG files; without any, messages that wait are delivered"),
        option("--cloud", required=True, metavar="URL", help="where the other half is; a key is read from ATTCEM_KEY"),
        option("--resize", action="store_true", help="cut out the middle and scale it to what the network takes"),
        option(
            "--per-picture",
            type=positive,
            help="sends of a picture (default: what the audit attacked, at most 16)",
        ),
        option("--per-lookalike", type=positive, help="of a picture and its near-duplicates (default: the same)"),
        option("--total", type=positive, help="sends of all pictures (default: 100,000)"),
        option("--nats", type=float, help="of a picture and its near-duplicates, by the rate bound (default: any)"),
        option("--state", metavar="DIR", help="where sends are remembered (default: ~/.local/state/attcem/device)"),
        option("--name", default="cloud", help="what the server calls the model (default: cloud)"),
        option("--ca", metavar="FILE", help="certificates to trust (default: the system's)"),
        option("--timeout", type=float, default=10.0, metavar="S", help="seconds for each step of a try (default: 10)"),
        option("--retries", type=int, default=3, help="more tries with the same message (default: 3)"),
        option("--queue", type=int, default=64, help="messages that may wait for the cloud (default: 64)"),
    ],
    "serve": [
        option("artifact", help="the folder that `attcem export` wrote"),
        option("--host", default="127.0.0.1", help="address to listen at; 0.0.0.0 is every one (default: 127.0.0.1)"),
        option("--port", type=port, default=8000, help="of HTTP; 0 takes any free one (default: 8000)"),
        option("--grpc-port", type=port, help="of gRPC; 0 takes any free one (default: no gRPC)"),
        option("--name", default="cloud", help="the model's name in the protocol (default: cloud)"),
        option("--threads", type=positive, default=1, help="cores for one batch (default: 1)"),
        option("--max-body", type=positive, default=16_000_000, metavar="BYTES", help="default: 16000000"),
        option("--max-batch", type=positive, default=64, metavar="PICTURES", help="in one request (default: 64)"),
        option("--max-concurrent", type=positive, default=64, metavar="REQUESTS", help="at a time (default: 64)"),
        option("--rate", type=rate, help="requests a second of each client (default: any)"),
        option("--keys", metavar="FILE", help="API keys, one a line (default: those of ATTCEM_KEYS, or none)"),
        option("--cert", metavar="FILE", help="certificate for TLS, in PEM"),
        option("--key", metavar="FILE", help="private key of the certificate"),
        option(
            "--engine", choices=["local", "ray"], default="local", help="ray: replicas on a cluster (default: local)"
        ),
        option("--replicas", type=positive, help="of --engine ray (default: 1)"),
        option("--address", help="a Ray cluster (default: this machine)"),
        option("--page", action="store_true", help="also the page that `attcem page` made, at the address itself"),
    ],
    "page": [
        option("artifact", help="the folder that `attcem export` wrote of a defended run"),
        option("--twin", required=True, metavar="ARTIFACT", help="that of a run without a defence, on the same data"),
    ],
    "get": [
        option("name", help="see `attcem list data`"),
        option("--root", help="the cache (default: ATTCEM_DATA or ~/.cache/attcem)"),
        option("--from", dest="source", metavar="FILE", help="an archive you already have"),
        option("--checksum", metavar="sha256:HEX", help="what to expect instead of the official checksum"),
    ],
}
