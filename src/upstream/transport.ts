/** How bytes reach an upstream and come back: over the network, or from the built-in demo model. */

import { type ByteList, wholeBytes } from '../lib/bytes/byte-list.ts';
import { Pieces } from '../lib/bytes/bytes.ts';
import type { FlatHeaders, ReadonlyHeaders } from '../lib/http/headers.ts';
import type { Abort } from '../lib/loop/abort.ts';
import type { ActivitySource } from '../lib/loop/idle-timer.ts';
import type { HeadLimits } from './http1/response-parser.ts';

/** A body is larger than its reader takes. The connection is to be closed. */
export class BodyTooLarge extends Error {
  readonly code = 'too much';
}

/** The body of a request that is read while it is sent. */
export interface RequestStream {
  /** Bytes of the whole; undefined: not known, and sent in chunks. */
  readonly length: number | undefined;
  /** The next piece, not empty; undefined at the end. Rejects with what ends the request in its middle. */
  read(): Promise<Uint8Array | undefined>;
}

/** What a request sends: the pieces of a list are ranges of buffers that others hold too. */
type RequestBody = Uint8Array | ByteList | RequestStream;

export interface UpstreamRequest {
  readonly url: string;
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly headers: ReadonlyHeaders;
  /** Those of this request alone: apart from the rest, which is the same list for many requests. */
  readonly ownHeaders?: FlatHeaders | undefined;
  readonly body?: RequestBody | undefined;
  /** The client's key, by its id: what a connection keeps of an answer is not another key's. */
  readonly owner?: string | undefined;
  /** Ends it, before the answer and while its body comes. */
  readonly abort: Abort;
  /** A new connection stands, proved where it has to be, and the request goes out. Fetch does not report it. */
  readonly onConnected?: () => void;
  /** How large the answer's head may be; left out: the usual. */
  readonly limits?: HeadLimits;
}

/** Is it read while it is sent? */
export const isRead = (body: RequestBody | undefined): body is RequestStream =>
  body !== undefined && 'read' in body;

/** The body in one, for what has to read it; undefined: there is none, or it is read while it is sent. */
export const wholeBody = ({ body }: UpstreamRequest): Uint8Array | undefined =>
  body === undefined || isRead(body) ? undefined : wholeBytes(body);

/** An object, not a closure: it is called for every event of every stream (decision 20). */
export interface ChunkSink {
  /** A promise when it takes time. Must not throw, nor may its promise reject. */
  write(chunk: Uint8Array): Promise<void> | undefined;
}

/**
 * A body in the chunks that it comes in. It is active when bytes come, and for as long as its sink is not
 * done with them.
 */
export interface ResponseBody extends ActivitySource {
  /**
   * All chunks that are there (maybe none yet), waiting where there are none; undefined at the end.
   * @throws when the connection broke off
   */
  read(): readonly Uint8Array[] | undefined | Promise<readonly Uint8Array[] | undefined>;
  /**
   * Gives every chunk that is still to come, in the turn in which it comes; where `write` gives a
   * promise, the next one waits for it. Resolves at the end. @throws as `read` does
   */
  pipe(sink: ChunkSink): Promise<void>;
  /**
   * The whole body, of `most` bytes at most (left out: any); not to be called after `read`.
   * @throws as `read` does; BodyTooLarge, and then the rest is not read
   */
  readAll(most?: number): Uint8Array | Promise<Uint8Array>;
  /** The whole body has come and was given out; left out: not known. */
  readonly isOver?: boolean;
  /** The rest is not needed. Safe at any time. */
  cancel(): void;
}

/** The first bytes of a body, up to the chunk that reaches `limit`; the rest is not waited for. @throws as `read` does */
export async function readFirst(
  body: ResponseBody,
  limit: number,
  onChunk: (chunk: Uint8Array) => void,
): Promise<void> {
  let size = 0;
  while (size < limit) {
    const more = await body.read();
    if (more === undefined) return;
    for (const chunk of more) {
      onChunk(chunk);
      size += chunk.length;
    }
  }
  body.cancel();
}

/** All chunks of a body as one. @throws as {@link ResponseBody.readAll} does */
export async function collect(
  body: Pick<ResponseBody, 'read' | 'cancel'>,
  most: number,
): Promise<Uint8Array> {
  const pieces = new Pieces();
  for (;;) {
    const more = await body.read();
    if (more === undefined) return pieces.joined();
    for (const chunk of more) pieces.push(chunk);
    if (pieces.size <= most) continue;
    body.cancel();
    throw new BodyTooLarge();
  }
}

export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: ReadonlyHeaders;
  readonly body: ResponseBody;
  /** The request did not go the way that the configuration asks for: how it went, and why. */
  readonly detour?: string;
}

/** Rejects when no answer could be had at all; an answer of any status resolves. */
export type Transport = (request: UpstreamRequest) => Promise<UpstreamAnswer>;

/** What proves the two sides to each other; all left out: the peer, by the usual authorities. */
export interface UpstreamTls {
  readonly rejectUnauthorized?: boolean;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}
