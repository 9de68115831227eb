/** Reads a request's body whole: bounded, and with its content encoding undone. */

import { GatewayError, invalid } from '../conversation/errors.ts';
import type { HeaderFields } from '../lib/header-list.ts';
import { memberOf } from '../lib/json-members.ts';

type Decoder = (bytes: Uint8Array, options: { maxOutputLength: number }) => Uint8Array;

// Loaded with the first encoded body: the start need not wait for it.
function decoders(): Readonly<Record<string, Decoder>> {
  const { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } =
    process.getBuiltinModule('node:zlib');
  return {
    gzip: gunzipSync,
    'x-gzip': gunzipSync,
    deflate: inflateSync,
    br: brotliDecompressSync,
    zstd: zstdDecompressSync as Decoder,
  };
}

// To receive so much takes as long as to look through it, which need not be done in one go.
const LARGE_BYTES = 256 * 1024;

const tooLarge = (limit: number) =>
  new GatewayError(
    'too_large',
    `The request body is larger than the ${limit} bytes that this gateway takes (limits.body_bytes).`,
  );

/**
 * The body's bytes, as they came to hand. `content-length` is checked before anything is read, and the
 * limit holds for the decoded size too, so that a small body cannot unfold into a large one.
 * @throws GatewayError too_large (413), or invalid_request for an unknown or broken encoding
 */
export function readBody(
  request: Request,
  headers: HeaderFields,
  limit: number,
): Promise<ArrayBuffer | Uint8Array> {
  const length = headers.get('content-length');
  // No more than its length comes of it.
  const plain = length !== null && !headers.has('content-encoding') && Number(length) <= limit;
  if (!plain) return readChecked(request, headers, limit);
  const read = request.arrayBuffer();
  return Number(length) < LARGE_BYTES ? read : read.then(afterOthers);
}

/** The same, once everybody who waits meanwhile has had a turn. */
const afterOthers = (buffer: ArrayBuffer): Promise<ArrayBuffer> =>
  new Promise((resolve) => setImmediate(resolve, buffer));

async function readChecked(
  request: Request,
  headers: HeaderFields,
  limit: number,
): Promise<Uint8Array> {
  const length = headers.get('content-length');
  if (Number(length ?? 0) > limit) throw tooLarge(limit);
  const bytes =
    length === null ? await readBounded(request, limit) : Buffer.from(await request.arrayBuffer());
  if (bytes.length > limit) throw tooLarge(limit);
  const encoding = headers.get('content-encoding');
  return encoding === null ? bytes : undo(bytes, encoding, limit);
}

async function readBounded(request: Request, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Encodings are undone in the reverse of the order in which they were applied (RFC 9110 §8.4). */
function undo(bytes: Uint8Array, encoding: string, limit: number): Uint8Array {
  let plain = bytes;
  const known = decoders();
  const names = encoding.split(',').map((name) => name.trim().toLowerCase());
  for (const name of names.reverse()) {
    if (name === '' || name === 'identity') continue;
    const decode = memberOf(known, name);
    if (decode === undefined) {
      throw new GatewayError('invalid_request', `Unknown content-encoding '${name}'.`, {
        status: 415,
        param: 'content-encoding',
      });
    }
    try {
      plain = decode(plain, { maxOutputLength: limit });
    } catch (thrown) {
      if ((thrown as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limit);
      throw invalid(`The request body is not valid ${name}.`, 'content-encoding');
    }
  }
  return plain;
}
