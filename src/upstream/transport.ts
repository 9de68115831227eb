/** How bytes reach an upstream and come back: over the network, or from the built-in demo model. */

import type { Abort } from '../lib/abort.ts';
import type { HeaderFields } from '../lib/header-list.ts';
import type { Stirring } from '../lib/silence.ts';

export interface UpstreamRequest {
  readonly url: string;
  readonly method: 'POST' | 'GET';
  readonly headers: HeaderFields;
  readonly body?: Uint8Array;
  /** Ends it, before the answer and while its body comes. */
  readonly abort: Abort;
  /** A new connection stands, proved where it has to be, and the request goes out. Fetch does not tell. */
  readonly onConnected?: () => void;
}

/** An object and no function: of every event of every stream it is cold, with all that it closes over. */
export interface Taker {
  /** A promise when it takes time. Must not throw, nor may its promise reject. */
  take(chunk: Uint8Array): Promise<void> | undefined;
}

/**
 * A body as it comes, in the chunks that it comes in. It stirs when bytes come, and for as long as whoever
 * takes them is not done.
 */
export interface ChunkSource extends Stirring {
  /**
   * All chunks that are there (maybe none yet), waiting where there are none; undefined at the end.
   * @throws when the connection broke off
   */
  next(): readonly Uint8Array[] | undefined | Promise<readonly Uint8Array[] | undefined>;
  /**
   * Gives every chunk that is still to come, in the turn in which it comes; where taking it gives a
   * promise, the next one waits for it. Resolves at the end. @throws as `next` does
   */
  each(taker: Taker): Promise<void>;
  /** The whole body, for whoever has not called `next`. @throws as `next` does */
  all(): Uint8Array | Promise<Uint8Array>;
  /** Nobody wants the rest. Safe at any time. */
  cancel(): void;
}

/** The first bytes of a body, up to the chunk that reaches `limit`; the rest is not waited for. @throws as `next` does */
export async function readFirst(
  body: ChunkSource,
  limit: number,
  onChunk: (chunk: Uint8Array) => void,
): Promise<void> {
  let size = 0;
  while (size < limit) {
    const more = await body.next();
    if (more === undefined) return;
    for (const chunk of more) {
      onChunk(chunk);
      size += chunk.length;
    }
  }
  body.cancel();
}

export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly body: ChunkSource;
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
