/** Bytes cut into chunks of the given sizes, again and again. */
export function* chunkBytes(bytes: Buffer, sizes: readonly number[]): Generator<Buffer> {
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes[n % sizes.length]! + 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}
