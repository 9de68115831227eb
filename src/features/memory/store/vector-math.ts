/** Arithmetic on vectors: normalizing, quantizing, cosines, and a coarse comparison by signs. */

/** The vector scaled to length 1; undefined for length 0 or values that are not finite. */
export function normalized(values: ArrayLike<number>): Float32Array | undefined {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]! * values[i]!;
  if (!(sum > 0) || !Number.isFinite(sum)) return undefined;
  const length = Math.sqrt(sum);
  return Float32Array.from(values, (value) => value / length);
}

/** The vector in one byte per dimension; its direction changes by less than a degree. */
export function quantized(vector: Float32Array): Int8Array {
  let most = 0;
  for (const value of vector) most = Math.max(most, Math.abs(value));
  return Int8Array.from(vector, (value) => Math.round((value / most) * 127));
}

/** The cosine between a {@link quantized} vector and a unit vector. */
export function cosine(stored: Int8Array, wanted: Float32Array): number {
  let sum = 0;
  let square = 0;
  for (let i = 0; i < stored.length; i++) {
    const value = stored[i]!;
    sum += value * wanted[i]!;
    square += value * value;
  }
  return square === 0 ? 0 : sum / Math.sqrt(square);
}

/** The number of 32-bit words for the signs of all dimensions. */
export const signWords = (dimensions: number): number => Math.ceil(dimensions / 32);

/** One bit for each dimension: set where it is above zero. */
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
 * The positions of the `count` sign patterns that differ least from one; more where some differ equally.
 * @param all the patterns one after another
 * @param length the number of patterns in `all`
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
