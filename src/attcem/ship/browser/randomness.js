/** Random numbers of a device, from the browser's cryptographic generator: step by step those of attcem.ship.randomness. */

const MOST = 65536; // bytes that getRandomValues gives at a time

function randomBytes(count) {
  const bytes = new Uint8Array(count);
  for (let start = 0; start < count; start += MOST) crypto.getRandomValues(bytes.subarray(start, start + MOST));
  return bytes;
}

/** Uniform on (0, 1], 53 bits each: the logarithm of none is infinite. */
function unitInterval(count) {
  const words = new DataView(randomBytes(8 * count).buffer);
  return Float64Array.from({ length: count }, (_, i) => {
    const low = words.getUint32(8 * i, true), high = words.getUint32(8 * i + 4, true);
    return (high * 2 ** 21 + (low >>> 11) + 1) / 2 ** 53;
  });
}

/** ±√(−2 ln u) · (cos θ, sin θ) (Box and Muller 1958): 32 bits for u, one for the sign, 31 for θ. */
function normal(count) {
  const half = Math.ceil(count / 2), words = new DataView(randomBytes(8 * half).buffer);
  const pairs = new Float32Array(2 * half);
  for (let i = 0; i < half; i++) {
    const first = words.getUint32(4 * i, true), second = words.getUint32(4 * (half + i), true);
    const radius = Math.sqrt(-2 * Math.log((first + 1) / 2 ** 32)) * (1 - 2 * (second & 1));
    const angle = Math.fround((second >>> 1) * (Math.PI / 2 ** 31) - Math.PI / 2);
    pairs[i] = radius * Math.cos(angle);
    pairs[half + i] = radius * Math.sin(angle);
  }
  return pairs.subarray(0, count);
}

/** ln u − ln v: the difference of two exponential numbers. */
function laplace(count) {
  const u = unitInterval(count), v = unitInterval(count);
  return Float32Array.from(u, (each, i) => Math.log(each) - Math.log(v[i]));
}

/** Uniform on [0, 1); rounding to single precision must not reach 1. */
function uniform(count) {
  return Float32Array.from(unitInterval(count), (u) => Math.min(Math.fround(1 - u), 1 - 2 ** -24));
}

const LAWS = { normal, laplace, uniform };

/** Fresh single-precision numbers of one distribution. */
export function draw(law, count) {
  if (!Object.hasOwn(LAWS, law)) throw new Error(`no distribution is called ${law}`);
  return LAWS[law](count);
}
