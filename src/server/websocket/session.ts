/** One WebSocket of the Responses API, without its socket: lanes, their order, what is remembered, and its end. */

import { asGatewayError, GatewayError, invalid } from '../../conversation/errors.ts';
import { type ClientFrame, type Creation, readFrame, UnreadableFrame } from './client-frames.ts';
import type { LaneMemory } from './response-memory.ts';

/** One response that the client asked for. */
export class Run {
  readonly streamId: string | undefined;
  readonly body: Uint8Array;
  readonly generate: boolean;
  /** The response of this very lane that it continues: lost if it fails. */
  readonly parent: string | undefined;
  readonly turnState: string | undefined;
  /** It came to its end, and is remembered. */
  succeeded = false;

  constructor({ streamId, body, generate, previous, turnState }: Creation) {
    this.streamId = streamId;
    this.body = body;
    this.generate = generate;
    this.parent = previous;
    this.turnState = turnState;
  }
}

/** A request that cannot be answered, behind others of its lane: its error now would pass for theirs. */
class Refusal {
  constructor(
    readonly streamId: string | undefined,
    readonly error: GatewayError,
  ) {}
}

/** What a session has done in the world. */
export interface SessionPort {
  /** A text frame to the client. */
  send(text: string): void;
  /** An error to the client, about this lane or about all. */
  sendError(error: GatewayError, streamId?: string): void;
  /** Answers it, and calls {@link SocketSession.ended} once. */
  start(run: Run): void;
  /** A body is held until its turn comes. @throws GatewayError overloaded when too much is held already */
  hold(bytes: number): void;
  release(bytes: number): void;
  close(code: number, reason: string): void;
}

export interface SessionLimits {
  /** Bytes of one frame. */
  readonly frameBytes: number;
  /** Longest time of a connection, for the words at its end. */
  readonly minutes: number;
}

// As the API has them, each for one connection.
const MAX_AT_A_TIME = 16;
const MAX_LANES = 32;
/** Of responses that wait for their turn. */
const MAX_WAITING = 256;

/** Close codes (RFC 6455 §7.4, and the IANA registry). */
const NORMAL = 1000;
const RESTART = 1012;
const POLICY = 1008;

const LIMIT_CODE = 'websocket_connection_limit_reached';

/** A session reacts to frames, closes and timers. All its effects go through its port. */
export class SocketSession {
  readonly #lanes = new Set<string>();
  /** By the name of the lane. */
  readonly #running = new Map<string | undefined, Run>();
  readonly #waiting: (Run | Refusal)[] = [];
  /** Frames behind a large one that is being read; undefined: none is. */
  #unread: string[] | undefined;
  /** It takes no more, and closes with these words when nothing runs. */
  #ending: { readonly code: number; readonly error: GatewayError | undefined } | undefined;
  #over = false;

  constructor(
    private readonly port: SessionPort,
    private readonly limits: SessionLimits,
    private readonly memory: LaneMemory,
  ) {}

  /** Nothing runs and nothing waits. */
  get idle(): boolean {
    return this.#running.size === 0 && this.#waiting.length === 0 && this.#unread === undefined;
  }

  /** A frame of the client's: text, or bytes of a binary one. */
  receive(frame: string | Uint8Array): void {
    if (this.#over) return;
    if (typeof frame !== 'string') {
      this.port.sendError(invalid('Frames must be text: one JSON object each.'));
      return;
    }
    const { frameBytes } = this.limits;
    if (Buffer.byteLength(frame) > frameBytes) {
      const words = `The frame is larger than the ${frameBytes} bytes that this gateway takes (limits.body_bytes, and a sixteenth of limits.unfinished_bytes).`;
      this.port.sendError(new GatewayError('too_large', words));
      return;
    }
    if (this.#unread !== undefined) {
      if (this.#held(frame.length, undefined)) this.#unread.push(frame);
      return;
    }
    const read = readFrame(frame);
    if (read instanceof Promise) {
      this.#unread = [];
      void this.#readOn(read, this.#unread);
    } else this.#take(read);
  }

  /** The answer of a run is over, whatever became of it. */
  ended(run: Run): void {
    if (this.#running.get(run.streamId) !== run) return;
    this.#running.delete(run.streamId);
    if (this.#over) return;
    const { parent, streamId } = run;
    const failed = !run.succeeded && parent !== undefined;
    if (failed && this.memory.isLast(streamId, parent)) this.memory.evict(streamId);
    this.#startNext();
    this.#endIfIdle();
  }

  /** The time of the connection is over: what runs may end, and nothing more begins. */
  expire(): void {
    this.#end(NORMAL, connectionLimit(this.limits.minutes));
  }

  /** The process stops, or leaves its clients to another one. */
  goAway(): void {
    this.#end(RESTART, undefined);
  }

  /** The client may no longer ask here. */
  revoke(): void {
    this.#over = true;
    this.#drop();
    this.port.close(POLICY, 'The key of this connection is not valid any more.');
  }

  /** If the session is ending, closes it now instead of waiting for running responses. */
  endNow(): void {
    if (this.#ending === undefined || this.#over) return;
    const { code, error } = this.#ending;
    this.#over = true;
    this.#drop();
    if (error !== undefined) this.port.sendError(error);
    this.port.close(code, error?.message.slice(0, 100) ?? 'The gateway is restarting.');
  }

  /** The socket is closed: nothing is sent after it. */
  closed(): void {
    this.#over = true;
    this.#drop();
  }

  #end(code: number, error: GatewayError | undefined): void {
    if (this.#over) return;
    this.#ending ??= { code, error };
    for (const next of this.#waiting.splice(0)) {
      if (next instanceof Refusal) this.port.sendError(next.error, next.streamId);
      else {
        this.port.release(next.body.length);
        this.#refuse(next.streamId);
      }
    }
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#ending !== undefined && this.idle) this.endNow();
  }

  #drop(): void {
    for (const next of this.#waiting.splice(0)) {
      if (next instanceof Run) this.port.release(next.body.length);
    }
    for (const frame of this.#unread?.splice(0) ?? []) this.port.release(frame.length);
    this.memory.clear();
  }

  /** A large frame, and those that came behind it meanwhile. */
  async #readOn(large: Promise<ClientFrame | UnreadableFrame>, unread: string[]): Promise<void> {
    let frame = await large;
    for (;;) {
      this.#take(frame);
      const next = unread.shift();
      if (next === undefined) break;
      this.port.release(next.length);
      frame = await readFrame(next);
    }
    this.#unread = undefined;
    this.#endIfIdle();
  }

  #take(frame: ClientFrame | UnreadableFrame): void {
    if (this.#over) return;
    if (frame instanceof UnreadableFrame) this.#refuseInTurn(frame);
    else if (frame.kind === 'create') this.#create(frame);
    else if (frame.kind === 'steer') this.port.send(steeringRefused(frame));
  }

  #refuseInTurn({ error, lane }: UnreadableFrame): void {
    const isBehind =
      lane !== undefined &&
      (this.#running.has(lane.streamId) ||
        this.#waiting.some(({ streamId }) => streamId === lane.streamId));
    if (!isBehind || this.#waiting.length >= MAX_WAITING)
      this.port.sendError(error, lane?.streamId);
    else this.#waiting.push(new Refusal(lane.streamId, error));
  }

  #create(creation: Creation): void {
    const { streamId } = creation;
    if (this.#ending !== undefined) {
      this.#refuse(streamId);
      return;
    }
    if (streamId !== undefined && !this.#lanes.has(streamId)) {
      if (this.#lanes.size >= MAX_LANES) {
        this.port.sendError(tooManyLanes(), streamId);
        return;
      }
      this.#lanes.add(streamId);
    }
    const run = new Run(creation);
    const busy = this.#running.has(streamId) || this.#running.size >= MAX_AT_A_TIME;
    // What waits for this lane already comes first.
    if (!busy) this.#start(run);
    else this.#wait(run);
  }

  #wait(run: Run): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.port.sendError(tooManyWaiting(), run.streamId);
    } else if (this.#held(run.body.length, run.streamId)) this.#waiting.push(run);
  }

  /** Holds so many bytes; false: there is no room, and the client knows. */
  #held(bytes: number, streamId: string | undefined): boolean {
    try {
      this.port.hold(bytes);
      return true;
    } catch (thrown) {
      this.port.sendError(asGatewayError(thrown), streamId);
      return false;
    }
  }

  #start(run: Run): void {
    this.#running.set(run.streamId, run);
    this.port.start(run);
  }

  /** A place is free: the first whose lane is free takes it. */
  #startNext(): void {
    while (this.#running.size < MAX_AT_A_TIME) {
      const at = this.#waiting.findIndex(({ streamId }) => !this.#running.has(streamId));
      const next = this.#waiting[at];
      if (next === undefined) return;
      this.#waiting.splice(at, 1);
      if (next instanceof Refusal) this.port.sendError(next.error, next.streamId);
      else {
        this.port.release(next.body.length);
        this.#start(next);
      }
    }
  }

  /** A request that comes too late. */
  #refuse(streamId: string | undefined): void {
    this.port.sendError(this.#ending?.error ?? restarting(), streamId);
  }
}

const connectionLimit = (minutes: number) =>
  new GatewayError(
    'invalid_request',
    `Responses websocket connection limit reached (${minutes} minutes). Create a new websocket connection to continue.`,
    { code: LIMIT_CODE },
  );

const tooManyLanes = () =>
  new GatewayError(
    'invalid_request',
    `This connection has had ${MAX_LANES} named streams, which is the most. Use one of them, or create a new websocket connection.`,
    { param: 'stream_id', code: 'websocket_stream_limit_reached', retryable: false },
  );

const tooManyWaiting = () =>
  new GatewayError(
    'rate_limit',
    `${MAX_WAITING} requests wait for their turn on this connection, which is the most.`,
    { code: 'too_many_queued_responses', retryAfter: 1 },
  );

const restarting = () =>
  new GatewayError(
    'overloaded',
    'This gateway is restarting. Create a new websocket connection to continue.',
    { code: 'server_restarting', retryAfter: 1 },
  );

/** The refusal of a steering in its own words: a gateway in front of other models cannot offer it. */
function steeringRefused({ streamId, previous }: Extract<ClientFrame, { kind: 'steer' }>): string {
  return JSON.stringify({
    type: 'response.steer.failed',
    ...(streamId === undefined ? {} : { stream_id: streamId }),
    steer: { previous_response_id: previous ?? null },
    error: {
      type: 'invalid_request_error',
      code: 'steering_not_supported',
      message: 'A response cannot be steered through this gateway.',
      param: null,
    },
  });
}
