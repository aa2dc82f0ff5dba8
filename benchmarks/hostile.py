"""Schemathesis makes requests from our OpenAPI document, right and wrong ones, and judges the replies.

python -m benchmarks.hostile                 # `make hostile` sends 100,000 damaged requests as well
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from benchmarks.served import served
from benchmarks.shipping import OUT, shipped

EXAMPLES = 200  # for each address
UNSAYABLE = "positive_data_acceptance"  # no schema says that `data` is as long as `shape` asks for


def main() -> int:
    artifact = OUT / "artifact" if (OUT / "artifact").exists() else shipped()
    program, key = Path(sys.executable).with_name("schemathesis"), secrets.token_hex(16)
    with TemporaryDirectory() as folder:
        (Path(folder) / "keys").write_text(key)
        with served(artifact, "--keys", f"{folder}/keys") as server:
            told = {"Authorization": f"Bearer {key}"}
            (Path(folder) / "openapi.json").write_bytes(httpx.get(f"{server.url}/openapi.json", headers=told).content)
            command = [str(program), "run", f"{folder}/openapi.json", "--url", server.url, "--checks", "all"]
            command += ["--exclude-checks", UNSAYABLE]
            command += ["--max-examples", str(EXAMPLES), "--seed", "1", "-H", f"Authorization: Bearer {key}"]
            failed = subprocess.run(command, cwd=folder).returncode
            lives = httpx.get(f"{server.url}/v2/health/live").status_code == 200
    return failed or not lives


if __name__ == "__main__":
    sys.exit(main())
