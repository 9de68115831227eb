/** An entry as its bytes in the cache: when it was written, the epoch of its group, and its JSON, compressed. */

import { parseJson } from '../lib/json/json.ts';

export interface PackedHead {
  /** Seconds since 1970. */
  readonly writtenAt: number;
  /** '' for an entry of no group. */
  readonly epoch: string;
}

const VERSION = 1;
/** Version, seconds, length of the epoch. */
const FIXED_BYTES = 6;

/** @param epoch at most 255 ASCII characters */
export function packed(value: unknown, epoch: string, nowMs: number): Uint8Array {
  const head = Buffer.alloc(FIXED_BYTES + epoch.length);
  head.writeUInt8(VERSION, 0);
  head.writeUInt32BE(Math.floor(nowMs / 1000), 1);
  head.writeUInt8(epoch.length, FIXED_BYTES - 1);
  head.write(epoch, FIXED_BYTES, 'latin1');
  return Buffer.concat([head, Bun.zstdCompressSync(Buffer.from(JSON.stringify(value)))]);
}

/** Undefined for bytes of a version that is not known here. */
export function headOf(bytes: Uint8Array): PackedHead | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (buffer.length <= FIXED_BYTES || buffer[0] !== VERSION) return undefined;
  const end = FIXED_BYTES + buffer[FIXED_BYTES - 1]!;
  return {
    writtenAt: buffer.readUInt32BE(1),
    epoch: buffer.toString('latin1', FIXED_BYTES, end),
  };
}

/** The value, and the bytes of its JSON. Undefined if it is damaged. */
export function unpacked(
  bytes: Uint8Array,
): { readonly value: unknown; readonly size: number } | undefined {
  try {
    const text = Bun.zstdDecompressSync(bytes.subarray(FIXED_BYTES + bytes[FIXED_BYTES - 1]!));
    const value: unknown = parseJson(Buffer.from(text).toString());
    return { value, size: text.length };
  } catch {
    return undefined;
  }
}
