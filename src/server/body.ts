/** Reads a request's body whole: bounded, and with its content encoding undone. */

import type { Transform } from 'node:stream';
import { GatewayError, invalid } from '../conversation/errors.ts';
import { checkValues } from '../gateway/client-request.ts';
import { asBuffer } from '../lib/bytes/bytes.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { madeLarge } from '../lib/loop/large-garbage.ts';
import { othersTurn } from '../lib/loop/steps.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { type Connections, PROGRESS_BYTES } from './connections.ts';

interface Decoder {
  /** In one go, no further than to a number of bytes. */
  readonly now: (bytes: Uint8Array, options: { maxOutputLength: number }) => Uint8Array;
  /** Piece by piece, beside the event loop. */
  readonly stream: () => Transform;
}

// Loaded with the first encoded body: the start need not wait for it.
function decoders(): Readonly<Record<string, Decoder>> {
  const zlib = process.getBuiltinModule('node:zlib');
  const gzip: Decoder = { now: zlib.gunzipSync, stream: () => zlib.createGunzip(PIECES) };
  return {
    gzip,
    'x-gzip': gzip,
    deflate: { now: zlib.inflateSync, stream: () => zlib.createInflate(PIECES) },
    br: {
      now: zlib.brotliDecompressSync,
      stream: () => zlib.createBrotliDecompress(PIECES),
    },
    zstd: {
      now: zlib.zstdDecompressSync as Decoder['now'],
      stream: () => zlib.createZstdDecompress(PIECES),
    },
  };
}

const PIECES = { chunkSize: 256 * 1024 };

// To receive so much takes as long as to look through it, which need not be done in one go.
const LARGE_BYTES = 256 * 1024;

// No more than a connection costs anyway.
const UNCOUNTED_BYTES = 16 * 1024;

// What is larger is read piece by piece: a slow line may take as long as it goes on.
const WATCHED_BYTES = 64 * 1024;

// Decompressing up to this size does not delay other requests noticeably; larger bodies are done in pieces of it.
const AT_ONCE_BYTES = 1024 * 1024;

// No honest client sends more of them.
const MAX_ENCODINGS = 4;

const tooLarge = (limit: number) =>
  new GatewayError(
    'too_large',
    `The request body is larger than the ${limit} bytes that this gateway takes (limits.body_bytes).`,
  );

/**
 * The body's bytes, as they came to hand. `content-length` is checked before anything is read, and the
 * limit holds for the decoded size too, so that a small body cannot unfold into a large one.
 * @throws GatewayError too_large (413), overloaded (503) while others fill the memory, or invalid_request for
 * an unknown or broken encoding
 */
export function readBody(
  request: Request,
  headers: ReadonlyHeaders,
  limit: number,
  connections: Connections,
  key = '',
): Promise<ArrayBuffer | Uint8Array> {
  const bytes = plainLength(headers);
  if (bytes === undefined || !(bytes <= limit && bytes <= WATCHED_BYTES)) {
    return readChecked(request, headers, limit, connections, key);
  }
  connections.reading(request, bytes);
  if (bytes <= UNCOUNTED_BYTES) return request.arrayBuffer();
  return readHeld(request, bytes, connections, key);
}

/** As {@link readBody}, for a body that is parsed in one go. @throws GatewayError also for more than that takes */
export function readParsable(
  ...args: Parameters<typeof readBody>
): Promise<ArrayBuffer | Uint8Array> {
  const reading = readBody(...args);
  const [, headers] = args;
  // A small one cannot hold too much.
  if ((plainLength(headers) ?? WATCHED_BYTES) < WATCHED_BYTES) return reading;
  return reading.then(async (body) => {
    await checkValues(body instanceof Uint8Array ? asBuffer(body) : Buffer.from(body));
    return body;
  });
}

/** Bytes of a body without a content encoding; undefined: it has one, or does not say. No more than its length comes. */
function plainLength(headers: ReadonlyHeaders): number | undefined {
  const length = headers.get('content-length');
  return length === null || headers.has('content-encoding') ? undefined : Number(length);
}

async function readHeld(
  request: Request,
  bytes: number,
  connections: Connections,
  key: string,
): Promise<ArrayBuffer> {
  const owner = connections.ownerOf(request, key);
  connections.hold(owner, bytes);
  try {
    return await request.arrayBuffer();
  } finally {
    connections.release(owner, bytes);
  }
}

async function readChecked(
  request: Request,
  headers: ReadonlyHeaders,
  limit: number,
  connections: Connections,
  key: string,
): Promise<Uint8Array> {
  const length = headers.get('content-length');
  if (Number(length ?? 0) > limit) throw tooLarge(limit);
  const encoding = headers.get('content-encoding');
  const names = encoding === null ? [] : encodingsOf(encoding);
  const owner = connections.ownerOf(request, key);
  const bytes = await readPieces(request, limit, connections, owner);
  if (bytes.length >= LARGE_BYTES) await othersTurn();
  return names.length === 0 ? bytes : undo(bytes, names, limit, connections, owner);
}

/** As long as it goes on, and no further than to the limit. */
async function readPieces(
  request: Request,
  limit: number,
  connections: Connections,
  owner: string,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let told = 0;
  connections.reading(request, 0);
  try {
    for await (const chunk of request.body ?? []) {
      if (size + chunk.length > limit) throw tooLarge(limit);
      connections.hold(owner, chunk.length);
      size += chunk.length;
      chunks.push(chunk);
      if (size - told >= PROGRESS_BYTES) {
        told = size;
        connections.reading(request, 0);
      }
    }
  } finally {
    connections.release(owner, size);
  }
  madeLarge(2 * size);
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

/** The encodings in the order in which they are undone, the reverse of that of the header (RFC 9110 §8.4). */
function encodingsOf(header: string): readonly string[] {
  const names = header
    .split(',', MAX_ENCODINGS + 1)
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  const known = decoders();
  const wrong = names.find((name) => memberOf(known, name) === undefined);
  if (wrong === undefined && names.length <= MAX_ENCODINGS) return names.reverse();
  const words =
    wrong === undefined
      ? `More than ${MAX_ENCODINGS} content encodings.`
      : `Unknown content-encoding '${printableLine(wrong, 60)}'.`;
  throw new GatewayError('invalid_request', words, { status: 415, param: 'content-encoding' });
}

async function undo(
  bytes: Uint8Array,
  encodings: readonly string[],
  limit: number,
  connections: Connections,
  owner: string,
): Promise<Uint8Array> {
  const known = decoders();
  let plain = bytes;
  for (const name of encodings) {
    try {
      plain = await decoded(known[name]!, plain, limit, connections, owner);
    } catch (thrown) {
      if (thrown instanceof GatewayError) throw thrown;
      throw invalid(`The request body is not valid ${name}.`, 'content-encoding');
    }
  }
  return plain;
}

/** Small ones at once, others beside the event loop. @throws GatewayError too_large, or what the decoder throws */
async function decoded(
  decoder: Decoder,
  bytes: Uint8Array,
  limit: number,
  connections: Connections,
  owner: string,
): Promise<Uint8Array> {
  if (bytes.length <= AT_ONCE_BYTES) {
    try {
      return decoder.now(bytes, { maxOutputLength: Math.min(limit, AT_ONCE_BYTES) });
    } catch (thrown) {
      if ((thrown as { code?: unknown }).code !== 'ERR_BUFFER_TOO_LARGE') throw thrown;
      if (limit <= AT_ONCE_BYTES) throw tooLarge(limit);
    }
  }
  const stream = decoder.stream();
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    stream.end(bytes);
    for await (const piece of stream as AsyncIterable<Uint8Array>) {
      if (size + piece.length > limit) throw tooLarge(limit);
      connections.hold(owner, piece.length);
      size += piece.length;
      pieces.push(piece);
    }
  } finally {
    stream.destroy();
    connections.release(owner, size);
  }
  madeLarge(2 * size);
  return Buffer.concat(pieces);
}
