"""Download one file: resumable, checked, and patient with a bad connection."""

import hashlib
import time
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from attcem.naming import look_up
from attcem.progress import bar

CHUNK = 1 << 20
LIMIT = 4 << 30
TRANSIENT = (URLError, ConnectionError, TimeoutError, HTTPException)
TRY_AGAIN_CODES = (408, 425, 429, 500, 502, 503, 504)
RANGE_NOT_SATISFIABLE = 416
DIGEST_LENGTHS = {"sha256": 64, "md5": 32}


def parse_checksum(text: str) -> tuple[str, str]:
    """Algorithm and lower-case hex digits of a checksum written sha256:HEX or md5:HEX."""
    algorithm, _, digits = text.strip().lower().partition(":")
    length = look_up("checksum algorithm", algorithm, DIGEST_LENGTHS)
    if len(digits) != length or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(f"{text!r} is no checksum: write {algorithm}: and then {length} hex digits")
    return algorithm, digits


def digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def wrong_checksum(path: Path, checksums: Sequence[str]) -> str | None:
    """None if the file has one of these checksums, else a sentence that gives its own beside them."""
    wanted = [parse_checksum(checksum) for checksum in checksums]
    own = {algorithm: digest(path, algorithm) for algorithm, _ in sorted(wanted)}
    if any(own[algorithm] == digits for algorithm, digits in wanted):
        return None
    has = " ".join(f"{algorithm}:{digits}" for algorithm, digits in own.items())
    return f"has checksum {has} and should have {' or '.join(checksums)}"


def fetch(
    url: str,
    part: Path,
    checksums: Sequence[str],
    *,
    progress: bool = True,
    attempts: int = 4,
    pause: float = 1.0,
    timeout: float = 30.0,
    limit: int = LIMIT,
) -> Path:
    """Download `url` into the file `part`, going on where an earlier call stopped, and verify it.

    while the file is not complete:
        ask for the bytes that are missing; on a transient failure pause and ask again
        give up after `attempts` failures in a row that brought nothing, keeping what is there
    compare the checksum; remove the file when it differs
    """
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{url} is no http address: download the file yourself and give it with --from FILE")
    if part.exists() and not wrong_checksum(part, checksums):
        return part
    failures, furthest = 0, _size(part)
    while True:
        try:
            _receive(url, part, progress=progress, timeout=timeout, limit=limit)
            break
        except TRANSIENT as error:
            if isinstance(error, HTTPError) and error.code not in TRY_AGAIN_CODES:
                if error.code != RANGE_NOT_SATISFIABLE or not _size(part):
                    advice = "give the file with --from FILE instead"
                    raise ValueError(f"{url} answers {error.code} {error.reason}: {advice}") from error
                part.unlink()  # as long as the file or longer, yet not the file: start again
            failures = 0 if _size(part) > furthest else failures + 1
            furthest = max(furthest, _size(part))
            if failures >= attempts:
                advice = "run the same command to go on, or give the file with --from FILE"
                kept = f"{_size(part):,} bytes are kept"
                raise ValueError(f"{url} cannot be fetched ({error}): {kept}, {advice}") from error
            time.sleep(pause * 2**failures)
    if problem := wrong_checksum(part, checksums):
        part.unlink()
        advice = "it was removed; try again, or pass the value you trust with --checksum sha256:HEX"
        raise ValueError(f"{url} {problem}: {advice}")
    return part


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _receive(url: str, part: Path, *, progress: bool, timeout: float, limit: int) -> None:
    """Ask once for what is missing and append it; raises ConnectionError when the body ends early."""
    have = _size(part)
    headers = {"User-Agent": "attcem", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with urlopen(Request(url, headers=headers), timeout=timeout) as response:
        resumed = response.status == 206  # a server that ignores Range sends everything instead
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            raise ConnectionError("the server sent another range than the one asked for")
        have = have if resumed else 0
        announced = response.headers.get("Content-Length", "")
        total = have + int(announced) if announced.isdigit() else None
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab" if resumed else "wb") as file, bar(part.stem, total, unit="bytes", shown=progress) as show:
            show(have)
            while chunk := response.read(CHUNK):
                have += len(chunk)
                if have > limit:
                    raise ValueError(f"{url} sends more than {limit:,} bytes: give the file with --from FILE instead")
                file.write(chunk)
                show(have)
    if total is not None and have < total:
        raise ConnectionError(f"the connection closed after {have:,} of {total:,} bytes")
