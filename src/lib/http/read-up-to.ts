/** Reads a body up to a limit, so that no answer can fill the memory. */

/**
 * The first `limit` bytes. The rest is not read, and the stream is cancelled.
 * @throws the error of the stream
 */
export async function readUpTo(
  body: ReadableStream<Uint8Array> | null | undefined,
  limit: number,
): Promise<{ readonly bytes: Uint8Array; readonly truncated: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > limit) break;
  }
  const bytes = new Uint8Array(Buffer.concat(chunks));
  return { bytes: bytes.subarray(0, limit), truncated: size > limit };
}
