"""The cloud's half as a model of MLServer, which runs it in a virtual environment of its own."""

import numpy as np
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Cloud(MLModel):
    """onnxruntime with one thread."""

    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(self.settings.parameters.uri, options)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Logits of what was sent."""
        sent = NumpyCodec.decode_input(payload.inputs[0]).astype(np.uint8, copy=False)
        logits = self.session.run(None, {"sent": sent})[0]
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("logits", logits)])
