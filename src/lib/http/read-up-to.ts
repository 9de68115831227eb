/** Reads a body no further than a limit, so that nobody's answer fills the memory. */

/**
 * The first `limit` bytes. What is beyond is left unread, and the stream is let go.
 * @throws whatever the stream fails with
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
