"""FastAPI, torch and JSON: `python -m benchmarks.rivals.fastapi_server ARTIFACT PORT`."""

import sys
from pathlib import Path

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from safetensors.torch import load_file

from attcem.models import build_split
from attcem.ship import read_artifact


class Message(BaseModel):
    """The released values of a few pictures, row by row."""

    shape: list[int]
    data: list[float]


def application(folder: Path) -> FastAPI:
    spec = read_artifact(folder).network
    assert spec is not None
    model = build_split(spec)
    tensors = load_file(folder / "model.safetensors")
    model.load_state_dict({key.removeprefix("model."): each for key, each in tensors.items() if key[:6] == "model."})
    decoder, app = model.eval().decoder, FastAPI()

    @app.post("/infer")
    async def infer(message: Message) -> dict:
        with torch.inference_mode():
            logits = decoder(torch.tensor(message.data).reshape(message.shape))
        return {"logits": logits.tolist()}

    return app


if __name__ == "__main__":
    torch.set_num_threads(1)
    uvicorn.run(application(Path(sys.argv[1])), port=int(sys.argv[2]), log_level="error", http="httptools")
