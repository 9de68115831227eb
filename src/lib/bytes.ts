/** Searches in raw bytes, native and without a copy. */

/** The same bytes with Buffer's searches: the very object where it is one, else a view of it. */
export const searchable = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** What is looked for again and again; a string would be turned into bytes for every search. */
export const marks = (...words: readonly string[]): readonly Buffer[] =>
  words.map((word) => Buffer.from(word));

/** Does one of them occur? */
export function holdsAny(bytes: Buffer, any: readonly Buffer[]): boolean {
  for (const mark of any) if (bytes.includes(mark)) return true;
  return false;
}
