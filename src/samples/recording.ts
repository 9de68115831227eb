/** The events of one exchange that a recorder gets: an interface that the gateway and the features may import. */

import type { GatewayError } from '../conversation/errors.ts';
import type { EntryName } from '../conversation/models/endpoint-names.ts';
import type { Note } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import type { Usage } from '../conversation/usage.ts';
import type { ByteList } from '../lib/bytes/byte-list.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { ToolRun } from './sample.ts';

export type { EntryName, ToolRun };

/** What a recorder receives when an exchange begins. */
export interface RecordedExchange {
  /** `req_…` */
  readonly id: string;
  /** The client's. */
  readonly protocol: { readonly name: EntryName };
  readonly body: Uint8Array;
  readonly headers: ReadonlyHeaders;
  /** The client's session id, '' when it sends none; searched for when it is first read. */
  readonly sessionId: string;
  readonly search: string;
  /** The name of the gateway key; '' without auth. */
  readonly owner: string;
  /** The client's address; left out where it is not asked for. */
  readonly address?: string | undefined;
}

/**
 * The events of one exchange, reported as they happen. Calls return at once and never throw. Bytes are
 * views that stay valid: a recorder may keep them but must not change them.
 */
export interface Recording {
  /** No call of `clientChunk` is needed for a stream, which then goes the shorter way. */
  readonly ignoresClient?: boolean;
  /** This gateway ran a tool. */
  tool?(run: ToolRun): void;
  /** The exchange uses this memory space: when the space is erased, the sample is removed with it. */
  space?(space: string): void;
  /** A try at an upstream begins: what is sent, credentials included. `hop` and `attempt` count from 1. */
  hop(hop: number, attempt: number, sent: SentRequest): HopRecording;
  /** The client's response begins. */
  clientStart(status: number, headers: ReadonlyHeaders): void;
  clientChunk(chunk: Uint8Array | string): void;
  /** The last call. */
  end(outcome: ExchangeOutcome): void;
}

export interface SentRequest {
  readonly target: Target;
  /** The model's name as the client asked for it. */
  readonly model: string;
  /** The name of the route that chose the target. */
  readonly route?: string;
  readonly url: string;
  readonly headers: ReadonlyHeaders;
  readonly body: Uint8Array | ByteList;
}

export interface HopRecording {
  /** Only the beginning of the response is needed: the rest of a stream goes the shorter way. */
  readonly headOnly?: boolean;
  /** A connection was made for this try; not called for a kept connection or a provider behind a proxy. */
  connected(): void;
  /** The upstream's response begins. */
  start(status: number, headers: ReadonlyHeaders): void;
  chunk(chunk: Uint8Array): void;
  /** The response is over, or never came. */
  end(error: GatewayError | undefined): void;
}

/** How an exchange ended. Times in ms since it started. */
export interface ExchangeOutcome {
  /** 499: the client disconnected. */
  readonly status: number;
  readonly model: string | undefined;
  readonly target: Target | undefined;
  /** The name of the route that chose the target. */
  readonly route?: string;
  readonly stream: boolean;
  readonly firstByte: number | undefined;
  readonly total: number;
  readonly tries: number;
  readonly hops: number;
  readonly usage: Usage | undefined;
  /** Nano-USD of all tries; left out: unknown. */
  readonly cost?: number | undefined;
  readonly notes: readonly Note[];
  readonly error: GatewayError | undefined;
}
