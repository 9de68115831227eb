/** A lane of a client WebSocket: the sink of its answers, and its earlier responses on the same connection. */

import type { JsonObject } from '../../lib/json/json.ts';

/** Takes the bytes of a stream for a client. */
export interface ByteSink {
  /** A promise when the client is slow, and only then. */
  write(chunk: Uint8Array | string): unknown;
  flush(): unknown;
  close(): void;
}

/** A stream that writes itself into a sink. */
export interface WritingStream {
  /** Writes everything. @throws GatewayError what cut the answer, after its error event */
  pull(sink: ByteSink): Promise<void>;
  /** The client's end of the answer goes out next: a microtask is queued that writes what the answer cost. */
  ending(): void;
  /** The client has gone. */
  gone(): void;
}

/** A conversation up to and including one response. */
export interface RememberedChain {
  /** Oldest first; parsed again with each call. */
  items(): readonly JsonObject[];
}

/** What a connection remembers: the last response of each of its lanes, stored or not. */
export interface ConnectionMemory {
  /** Undefined: this connection does not know the response (any more). */
  recall(id: string): RememberedChain | undefined;
  /** The lane's last response is this one: `items` behind what came before. */
  remember(
    id: string,
    before: RememberedChain | readonly JsonObject[],
    items: readonly JsonObject[],
  ): void;
}

/** `x-codex-turn-state`, by which a vendor finds the place of a turn again. */
export interface TurnState {
  readonly value: string;
  /** As in `x-hopgate-target`; undefined: another connection got it. */
  readonly target: string | undefined;
}

/** One request on a lane of a WebSocket. */
export interface ClientLane extends ConnectionMemory {
  /** The client's, as of the upgrade; undefined where it is not asked for. */
  readonly address: string | undefined;
  /** A sign of the vendor's, to be sent back to the target that gave it and to no other. */
  readonly turnState?: TurnState | undefined;
  /** Takes the stream of the answer, in place of the body of a response. */
  open(stream: WritingStream): void;
}
