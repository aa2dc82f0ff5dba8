/** A message as the Open Inference Protocol v2 carries it, with binary tensors, and the server's answer to it. */

import { bytesOf } from "./halves.js";

const LENGTH = "Inference-Header-Content-Length";
const DATATYPES = { uint8: "UINT8", float32: "FP32" };

export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

/** The body of a request for the logits of what is sent, and the length of the JSON before it. */
function request(id, sent) {
  const content = bytesOf(sent);
  const tensor = { name: "sent", shape: sent.dims, datatype: DATATYPES[sent.type] };
  tensor.parameters = { binary_data_size: content.length };
  const outputs = [{ name: "logits", parameters: { binary_data: true } }];
  const head = new TextEncoder().encode(JSON.stringify({ id, inputs: [tensor], outputs }));
  const body = new Uint8Array(head.length + content.length);
  body.set(head);
  body.set(content, head.length);
  return { body, length: head.length };
}

/** Send one message; the logits, and the bytes of the request's body. */
export async function ask(model, sent, classes, key) {
  const id = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const { body, length } = request(id, sent);
  const headers = { "Content-Type": "application/octet-stream", [LENGTH]: String(length) };
  if (key) headers.Authorization = `Bearer ${key}`;
  const address = `v2/models/${encodeURIComponent(model)}/infer`;
  const reply = await fetch(address, { method: "POST", headers, body, cache: "no-store" });
  const answer = await reply.arrayBuffer();
  if (!reply.ok) throw new Refused(reply.status, new TextDecoder().decode(answer.slice(0, 500)));
  return { logits: logitsOf(reply.headers, answer, id, classes), bytes: body.length };
}

function logitsOf(headers, answer, id, classes) {
  const end = Number(headers.get(LENGTH));
  const said = JSON.parse(new TextDecoder().decode(answer.slice(0, end)));
  const output = said.outputs?.[0];
  const size = answer.byteLength - end;
  if (said.id !== id || output?.name !== "logits" || output.datatype !== "FP32" || size !== 4 * classes) {
    throw new Refused(502, "the answer is not one to this request");
  }
  const values = new DataView(answer, end);
  return Float32Array.from({ length: classes }, (_, i) => values.getFloat32(4 * i, true));
}
