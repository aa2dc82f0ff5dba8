/** Pictures: read from files and cameras as the device takes them, drawn as people see them. */

/** The middle of a source, scaled to the device's shape: floats from 0 to 1, channels first. */
export function pixelsOf(source, [channels, height, width], inverted) {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const [w, h] = [source.videoWidth ?? source.width, source.videoHeight ?? source.height];
  const scale = Math.max(width / w, height / h);
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(source, (width - w * scale) / 2, (height - h * scale) / 2, w * scale, h * scale);
  const { data } = context.getImageData(0, 0, width, height);
  const values = new Float32Array(channels * height * width);
  for (let i = 0; i < height * width; i++) {
    const [r, g, b] = data.subarray(4 * i, 4 * i + 3);
    const seen = channels === 1 ? [Math.round(0.299 * r + 0.587 * g + 0.114 * b)] : [r, g, b];
    seen.forEach((value, c) => { values[c * height * width + i] = (inverted ? 255 - value : value) / 255; });
  }
  return values;
}

/** Whether a picture's border is light. */
export function lightBorder(source, shape) {
  const [, height, width] = shape;
  const values = pixelsOf(source, shape, false);
  const border = values.filter((_, i) => [0, height - 1].includes(Math.floor(i / width) % height) || [0, width - 1].includes(i % width));
  return border.reduce((sum, value) => sum + value, 0) / border.length > 0.5;
}

/** An example's bytes, rows of pixels with channels last, as the device takes them. */
export function decoded(base64, [channels, height, width]) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const plane = height * width;
  return Float32Array.from({ length: channels * plane }, (_, i) => bytes[(i % plane) * channels + Math.floor(i / plane)] / 255);
}

/** Draw a picture, one pixel of the canvas each. */
export function paint(canvas, values, [channels, height, width]) {
  fill(canvas, width, height, (i) => {
    const at = (c) => 255 * values[(channels === 1 ? 0 : c) * height * width + i];
    return [at(0), at(1), at(2)];
  });
}

/** Draw bytes as cells of a square, between the two colours of the page for them. */
export function paintBytes(canvas, bytes) {
  const side = Math.ceil(Math.sqrt(bytes.length));
  const style = getComputedStyle(canvas);
  const [low, high] = ["--byte-low", "--byte-high"].map((name) => style.getPropertyValue(name).trim().split(/\s+/).map(Number));
  fill(canvas, side, Math.ceil(bytes.length / side), (i) =>
    i < bytes.length ? low.map((value, c) => value + ((high[c] - value) * bytes[i]) / 255) : null);
}

function fill(canvas, width, height, colour) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    const seen = colour(i);
    if (seen) image.data.set([...seen, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
}

export const squaredError = (guess, truth) => guess.reduce((sum, value, i) => sum + (value - truth[i]) ** 2, 0) / truth.length;
