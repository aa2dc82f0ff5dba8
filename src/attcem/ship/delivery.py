"""Carries a message to the cloud: bounded in time, tries and size, and the same bytes at every try."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from attcem.reading.plain import MEGABYTE, one_line
from attcem.ship.graphs import needed
from attcem.ship.request import Message

LARGEST_ANSWER = MEGABYTE
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
TRY_AGAIN = frozenset({408, 429, 502, 503, 504})
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Unreachable(ConnectionError):
    """No answer, although every try was made."""


class Cloud:
    """The cloud's address, and a connection to it that is kept open."""

    def __init__(
        self,
        url: str,
        *,
        name: str,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 3,
        ca: str | None = None,
    ) -> None:
        check_address(url, key)
        if not timeout > 0 or retries < 0:
            raise ValueError(f"timeout={timeout} and retries={retries}: give seconds above 0, and 0 retries or more")
        httpx = needed("httpx")
        authority = {"Authorization": f"Bearer {key}"} if key else {}
        verify = ssl.create_default_context(cafile=ca)
        # No proxy, certificate or password from the environment: messages go where they were told to go.
        self._client = httpx.Client(timeout=timeout, headers=authority, verify=verify, trust_env=False)
        self._failures = (httpx.TransportError,)
        self.url, self.retries = f"{url.rstrip('/')}/v2/models/{quote(name, safe='')}/infer", retries

    def ask(self, message: Message) -> tuple[Mapping[str, str], bytes]:
        """The headers and the body of the answer; Unreachable where there is none, ValueError where it is a no."""
        reason = ""
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(pause(attempt))
            try:
                status, headers, body = self._post(message)
            except self._failures as error:
                reason = one_line(error) or type(error).__name__
                continue
            if status == 200:
                return headers, body
            reason = f"status {status}: {body[:300].decode(errors='replace')}"
            if status not in TRY_AGAIN:
                raise ValueError(f"{self.url} refused the message ({one_line(ValueError(reason))})")
        raise Unreachable(f"{self.url} does not answer ({reason}) after {self.retries + 1} tries")

    def _post(self, message: Message) -> tuple[int, Mapping[str, str], bytes]:
        with self._client.stream("POST", self.url, content=message.body, headers=message.headers) as answer:
            body = bytearray()
            for part in answer.iter_bytes():
                body += part
                if len(body) > LARGEST_ANSWER:
                    raise ValueError(f"{self.url} answers with more than {LARGEST_ANSWER} bytes: is it `attcem serve`?")
            return answer.status_code, answer.headers, bytes(body)

    def close(self) -> None:
        self._client.close()


def check_address(url: str, key: str | None) -> None:
    """Raise unless the address is plain, and encrypted where a key would cross a network."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url!r} is not the address of a cloud: give one such as https://host:8000")
    if key and parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise ValueError(f"{url} would carry the key in the clear: use https")


def pause(attempt: int) -> float:
    """Seconds before a try: twice as long every time, and at random up to half less, so that devices do not march."""
    random = int.from_bytes(os.urandom(4)) / 2**32
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1)) * (1 - random / 2)
