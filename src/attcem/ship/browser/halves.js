/** One network in this browser: its device, its cloud and its attacker, as graphs that onnxruntime-web runs. */

import * as ort from "./vendor/ort.wasm.bundle.min.mjs";
import { draw } from "./randomness.js";

ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = { wasm: new URL("vendor/ort-wasm-simd-threaded.wasm", import.meta.url).href };

const product = (shape) => shape.reduce((all, each) => all * each, 1);

async function open(address) {
  const reply = await fetch(new URL(address, import.meta.url));
  if (!reply.ok) throw new Error(`${address}: ${reply.status}`);
  return ort.InferenceSession.create(new Uint8Array(await reply.arrayBuffer()), { executionProviders: ["wasm"] });
}

export class Side {
  constructor(facts, shape, device, cloud, attacker) {
    Object.assign(this, { facts, shape, device, cloud, attacker });
  }

  static async open(name, facts, shape) {
    const graphs = [];
    for (const graph of ["device", "cloud", "attacker"]) graphs.push(await open(`${name}/${graph}.onnx`));
    return new Side(facts, shape, ...graphs);
  }

  /** What the device sends of a picture: every call draws all its random numbers anew, at any strength of the noise. */
  async release(picture, stop) {
    const feeds = { image: new ort.Tensor("float32", picture, [1, ...this.shape]) };
    for (const { name, distribution, shape } of this.facts.randomness) {
      const scale = distribution === "normal" ? this.facts.stops[stop].scale : 1;
      const values = draw(distribution, product(shape)).map((value) => value * scale);
      feeds[name] = new ort.Tensor("float32", values, [1, ...shape]);
    }
    return (await this.device.run(feeds)).sent;
  }

  /** The logits, computed here. */
  async answer(sent) {
    return (await this.cloud.run({ sent })).logits.data;
  }

  /** What the attacker makes of a message; it is told how strong the noise is. */
  async rebuild(sent, stop) {
    const place = this.attacker.inputNames.includes("place");
    const told = place ? { place: new ort.Tensor("float32", Float32Array.of(stop), [1, 1]) } : {};
    return (await this.attacker.run({ sent, ...told })).picture.data;
  }
}

/** The bytes of a tensor as they cross the wire. */
export const bytesOf = ({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
