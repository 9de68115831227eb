/** An upstream's body as plain bytes, whatever encoding it came in although none was asked for. */

import type { Readable as NodeReadable, Transform } from 'node:stream';
import { GatewayError } from '../conversation/errors.ts';
import { FlatHeaders } from '../lib/http/headers.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { streamSource } from '../upstream/fetch-transport.ts';
import type { ResponseBody, UpstreamAnswer } from '../upstream/transport.ts';

// A body that is encoded more often than this is meant to do harm.
const MAX_ENCODINGS = 2;
// What is unpacked comes in pieces of this size, and no further ones before they are taken.
const PIECE_BYTES = 64 * 1024;

type Unpack = () => Transform;

// Loaded with the first encoded answer: hardly any vendor sends one.
function unpackers(): Readonly<Record<string, Unpack>> {
  const { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } =
    process.getBuiltinModule('node:zlib');
  const options = { chunkSize: PIECE_BYTES };
  const gzip = () => createGunzip(options);
  return {
    gzip,
    'x-gzip': gzip,
    deflate: () => createInflate(options),
    br: () => createBrotliDecompress(options),
    zstd: () => createZstdDecompress(options),
  };
}

/**
 * Decompresses the body while it is read. An answer without a content encoding is returned as it is. The name
 * of an unknown encoding is dropped: such a body is plain after all, or no client can read it.
 */
export function decoded(answer: UpstreamAnswer): UpstreamAnswer {
  const encoding = answer.headers.get('content-encoding');
  if (encoding === null) return answer;
  const headers = new FlatHeaders();
  for (const [name, value] of answer.headers) {
    if (name !== 'content-encoding' && name !== 'content-length') headers.append(name, value);
  }
  const body = unpacked(answer.body, encoding);
  return { ...answer, headers, body };
}

/** Encodings are undone in the reverse of the order in which they were applied (RFC 9110 §8.4). */
function unpacked(body: ResponseBody, encoding: string): ResponseBody {
  const known = unpackers();
  const steps: Unpack[] = [];
  for (const part of encoding.split(',', MAX_ENCODINGS + 1)) {
    const name = part.trim().toLowerCase();
    if (name === '' || name === 'identity') continue;
    const step = memberOf(known, name);
    if (step === undefined) return body;
    steps.push(step);
  }
  if (steps.length === 0) return body;
  const named = encoding.slice(0, 40);
  return streamSource(() =>
    steps.length > MAX_ENCODINGS
      ? failing(body, unreadable(named, undefined))
      : throughAll(body, steps.reverse(), named),
  );
}

const unreadable = (encoding: string, cause: unknown) =>
  new GatewayError('upstream', `The upstream's answer cannot be unpacked (${encoding}).`, {
    cause,
  });

function failing(body: ResponseBody, error: Error): ReadableStream<Uint8Array> {
  body.cancel();
  return new ReadableStream({ start: (controller) => controller.error(error) });
}

function throughAll(
  body: ResponseBody,
  steps: readonly Unpack[],
  encoding: string,
): ReadableStream<Uint8Array> {
  const { Readable } = process.getBuiltinModule('node:stream');
  let broken: unknown;
  let last: NodeReadable = Readable.from(
    chunksOf(body, (thrown) => {
      broken = thrown;
    }),
  );
  const all = [last];
  for (const step of steps) {
    const next = step();
    // `pipe` passes no error on.
    last.on('error', (thrown) => next.destroy(thrown));
    last = last.pipe(next);
    all.push(last);
  }
  // The reader gets the error from the iterator; without this listener an early one would be unhandled.
  last.on('error', () => {});
  const pieces = last[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const stop = () => {
    for (const one of all) one.destroy();
    body.cancel();
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await pieces.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (thrown) {
          stop();
          controller.error(broken ?? unreadable(encoding, thrown));
        }
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  );
}

async function* chunksOf(body: ResponseBody, onError: (thrown: unknown) => void) {
  try {
    for (let batch = await body.read(); batch !== undefined; batch = await body.read()) {
      yield* batch;
    }
  } catch (thrown) {
    onError(thrown);
    throw thrown;
  }
}
