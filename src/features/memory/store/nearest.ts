/** Vectors that lie near another one: a coarse look at signs first, the angle for those that remain. */

/** A vector of length 1; undefined where it has none or holds what is no number. */
export function unit(values: ArrayLike<number>): Float32Array | undefined {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]! * values[i]!;
  if (!(sum > 0) || !Number.isFinite(sum)) return undefined;
  const length = Math.sqrt(sum);
  return Float32Array.from(values, (value) => value / length);
}

/** A vector in a byte a dimension, its direction kept to within a degree; a quarter of the room. */
export function small(vector: Float32Array): Int8Array {
  let most = 0;
  for (const value of vector) most = Math.max(most, Math.abs(value));
  return Int8Array.from(vector, (value) => Math.round((value / most) * 127));
}

/** The cosine between a vector as {@link small} keeps it and a unit vector. */
export function cosine(kept: Int8Array, wanted: Float32Array): number {
  let sum = 0;
  let square = 0;
  for (let i = 0; i < kept.length; i++) {
    const value = kept[i]!;
    sum += value * wanted[i]!;
    square += value * value;
  }
  return square === 0 ? 0 : sum / Math.sqrt(square);
}

/** 32-bit words that hold the signs of so many dimensions. */
export const signWords = (dimensions: number): number => Math.ceil(dimensions / 32);

/** One bit for each dimension: above zero or not. */
export function signs(vector: Float32Array): Uint32Array {
  const out = new Uint32Array(signWords(vector.length));
  for (let i = 0; i < vector.length; i++) if (vector[i]! > 0) out[i >>> 5]! |= 1 << (i & 31);
  return out;
}

function bitsSet(word: number): number {
  let v = word - ((word >>> 1) & 0x55555555);
  v = (v & 0x33333333) + ((v >>> 2) & 0x33333333);
  return Math.imul((v + (v >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/**
 * Places of the `count` (or, among equals, somewhat more) sign patterns that differ least from one.
 * @param all patterns one behind the other
 * @param length how many patterns of `all` count
 */
export function fewestDifferences(
  all: Uint32Array,
  length: number,
  wanted: Uint32Array,
  count: number,
): readonly number[] {
  const words = wanted.length;
  const distances = new Uint16Array(length);
  const histogram = new Uint32Array(words * 32 + 1);
  for (let at = 0, from = 0; at < length; at++, from += words) {
    let distance = 0;
    for (let i = 0; i < words; i++) distance += bitsSet(all[from + i]! ^ wanted[i]!);
    distances[at] = distance;
    histogram[distance]!++;
  }
  let within = -1;
  for (let sum = 0; sum < count && within < words * 32; ) sum += histogram[++within]!;
  const out: number[] = [];
  for (let at = 0; at < length; at++) if (distances[at]! <= within) out.push(at);
  return out;
}
