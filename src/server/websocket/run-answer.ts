/** One response on a WebSocket: the ordinary way of a request, its answer as frames. */

import type { Codec } from '../../codecs/codec.ts';
import { asGatewayError, GatewayError } from '../../conversation/errors.ts';
import {
  TURN_STATE,
  type TurnStates,
  turnStateEvent,
} from '../../conversation/session/turn-state.ts';
import type {
  ByteSink,
  ClientLane,
  ConnectionMemory,
  WritingStream,
} from '../../gateway/stream/client-lane.ts';
import type { FlatHeaders } from '../../lib/http/headers.ts';
import { startIdleTimer } from '../../lib/loop/idle-timer.ts';
import { requestId } from '../../lib/text/ids.ts';
import type { Receiver } from '../receive.ts';
import { AnswerFrames } from './answer-frames.ts';
import { answerErrorFrame, gatewayErrorFrame } from './error-frames.ts';
import type { Run } from './session.ts';

/** The socket, as an answer sees it. */
export interface FrameWriter {
  /** Text frames in one go; a promise when the client is slow, and only then. */
  write(frames: readonly string[]): Promise<void> | undefined;
}

/** What all answers of one connection share. */
export interface AnswerOptions {
  /** The ordinary way of a request. */
  readonly serve: Receiver;
  /** The same for a request that is only to be remembered. */
  readonly warmUp: Receiver;
  readonly codec: Codec;
  readonly writer: FrameWriter;
  /** `http://…/v1/responses`, with the client's query. */
  readonly url: string;
  /** Those of the upgrade, without what belongs to it. */
  readonly headers: FlatHeaders;
  readonly turnStates: TurnStates;
  /** Milliseconds of silence until a sign of life; 0 = none. */
  readonly keepAliveMs: number;
  /** The client's; undefined where it is not asked for. */
  readonly address: string | undefined;
}

/** Answers one run; {@link gone} stops it at once. */
export class RunAnswer implements ClientLane, ByteSink {
  readonly #frames: AnswerFrames;
  readonly #abort = new AbortController();
  #stream: WritingStream | undefined;
  #gone = false;
  /** `x-hopgate-target` of the answer. */
  #target: string | undefined;

  constructor(
    private readonly options: AnswerOptions,
    private readonly run: Run,
    private readonly memory: ConnectionMemory,
  ) {
    this.#frames = new AnswerFrames(run.streamId, (state) => {
      if (this.#target !== undefined) options.turnStates.learn(state, this.#target);
    });
  }

  get turnState() {
    const value = this.run.turnState;
    return value === undefined
      ? undefined
      : { value, target: this.options.turnStates.targetOf(value) };
  }

  get address(): string | undefined {
    return this.options.address;
  }

  /** Resolves when nothing more comes, with the status of the answer. Never rejects. */
  async done(): Promise<number> {
    try {
      return await this.#answered();
    } catch (thrown) {
      const error = asGatewayError(thrown);
      this.#fail(error);
      return error.status;
    }
  }

  /** The client has disconnected: aborts the request to the vendor and records what came so far. */
  gone(): void {
    this.#gone = true;
    this.#abort.abort();
    this.#stream?.gone();
  }

  open(stream: WritingStream): void {
    this.#stream = stream;
  }

  recall(id: string) {
    return this.memory.recall(id);
  }

  remember(...told: Parameters<ConnectionMemory['remember']>): void {
    this.run.succeeded = true;
    if (!this.#gone) this.memory.remember(...told);
  }

  write(chunk: Uint8Array | string): Promise<void> | undefined {
    const { ended } = this.#frames;
    const frames = this.#frames.push(chunk);
    return this.#frames.ended === ended ? this.#put(frames) : this.#putLast(frames);
  }

  flush(): void {}

  close(): void {
    void this.#put(this.#frames.end());
  }

  async #answered(): Promise<number> {
    const { serve, warmUp, codec, keepAliveMs } = this.options;
    const keep = startIdleTimer(keepAliveMs, () => this.#put([this.#frames.keepAlive()]));
    let answer: Response;
    try {
      answer = await (this.run.generate ? serve : warmUp)(this.#request(), codec, undefined, this);
    } finally {
      keep.stop();
    }
    if (this.#gone) {
      this.#stream?.gone();
      return answer.status;
    }
    this.#target = answer.headers.get('x-hopgate-target') ?? undefined;
    const state = answer.headers.get(TURN_STATE);
    if (state !== null && answer.ok) await this.#put(this.#frames.push(turnStateFrame(state)));
    if (this.#stream !== undefined) await this.#stream.pull(this);
    else if (answer.ok) await this.#put(this.#frames.push(await answer.text()));
    else {
      await this.#put([await answerErrorFrame(answer, this.run.streamId)]);
      return answer.status;
    }
    if (!this.#frames.ended && !this.run.succeeded) throw unended();
    return answer.status;
  }

  /** The same request as it would come by POST. */
  #request(): Request {
    const { url, headers } = this.options;
    const { body } = this.run;
    const own = new Headers(headers.record());
    own.set('content-type', 'application/json');
    own.set('content-length', String(body.length));
    if (this.run.turnState !== undefined) own.set(TURN_STATE, this.run.turnState);
    const init = { method: 'POST', headers: own, body, signal: this.#abort.signal };
    return new Request(url, init as RequestInit);
  }

  /** An error behind the last event changes nothing. */
  #fail(error: GatewayError): void {
    if (this.#frames.ended || this.#gone) return;
    const { codec } = this.options;
    void this.#put([gatewayErrorFrame(codec, error, requestId(), this.run.streamId)]);
  }

  /** No end of a body follows, which may come much later than the last event: what the answer cost is written first. */
  async #putLast(frames: readonly string[]): Promise<void> {
    this.#stream?.ending();
    await undefined;
    await this.#put(frames);
  }

  #put(frames: readonly string[]): Promise<void> | undefined {
    return frames.length === 0 || this.#gone ? undefined : this.options.writer.write(frames);
  }
}

/** As a vendor sends it within a stream. */
const turnStateFrame = (state: string) => `data: ${turnStateEvent(state)}\n\n`;

const unended = () =>
  new GatewayError('upstream', 'The answer ended without its last event.', { retryable: true });
