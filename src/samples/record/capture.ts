/** One exchange while it is recorded: bodies and facts are collected by reference and not yet read. */

import type { GatewayError } from '../../conversation/errors.ts';
import { type EntryName, protocolOf } from '../../conversation/models/endpoint-names.ts';
import { targetName } from '../../conversation/target.ts';
import { bytePieces } from '../../lib/bytes/byte-list.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import type { Linked } from '../../lib/loop/linked-list.ts';
import { type HashedName, nameHash } from '../../state/erasures.ts';
import type { BlankedContent } from '../mask/blank-body.ts';
import { KnownSecrets } from '../mask/known-secrets.ts';
import type {
  ExchangeOutcome,
  HopRecording,
  RecordedExchange,
  Recording,
  SentRequest,
  ToolRun,
} from '../recording.ts';
import type { SampleToolRun } from '../sample.ts';
import {
  type Masking,
  round,
  StageBody,
  type StageFacts,
  sampleError,
  type UnmaskedFacts,
} from './stage-body.ts';
import type { Queued, QueuePlace } from './write-queue.ts';

/**
 * `undecided`: held in memory until the mode of its route or its outcome decides. `discard`: not kept,
 * because there is no room or its mode does not ask for it.
 */
export type Disposition = 'undecided' | 'write' | 'discard';

export interface CaptureHooks {
  /** Known secrets in all their spellings. */
  literals(): readonly string[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Content that is blanked in bodies. */
  blank(): readonly BlankedContent[];
  /** Most bytes of one body that are kept. */
  readonly bodyBytes: number;
  /** Accounts for bytes that the capture holds from now on; false: there is no room and the sample is dropped. */
  hold(capture: Capture, bytes: number): boolean;
  /** The route is known. */
  onRoute(capture: Capture, route: string | undefined): void;
  onEnd(capture: Capture): void;
}

/** A memory space, or its hash where another replica erased it. */
export type SpaceName = string | HashedName;

/** @param until not one that began later, in ms since 1970 */
export const isOfSpace = (
  { memorySpace, time }: Pick<Capture, 'memorySpace' | 'time'>,
  space: SpaceName,
  until = Number.POSITIVE_INFINITY,
): boolean =>
  memorySpace !== undefined &&
  time <= until &&
  (memorySpace === space || nameHash(memorySpace) === nameHash(space));

// Memory of a stage beside its body: headers, facts, times of its chunks.
const STAGE_OVERHEAD_BYTES = 2048;

export class Capture implements Recording, Masking, Linked<Capture>, Queued<Capture> {
  readonly id: string;
  readonly entry: EntryName;
  readonly time: number;
  readonly owner: string;
  /** The client's, which is personal data as texts are: blanked where they are. */
  readonly address: string | undefined;
  /** The query string, masked. It and the session are known from {@link prepare} on. */
  search = '';
  session = '';
  /** The memory space that the exchange uses. */
  memorySpace: string | undefined;
  readonly stages: StageBody[] = [];
  readonly tools: SampleToolRun[] = [];
  /** Content that is blanked in the bodies. */
  readonly blanked: readonly BlankedContent[];
  disposition: Disposition = 'undecided';
  outcome: ExchangeOutcome | undefined;
  /** Credentials masked in headers and URLs. */
  masked = 0;
  /** The meta file with the state `open` is on disk. */
  announced = false;
  /** Its route is not to be looked at. */
  hidden = false;
  /** Watchers have heard of it while it ran. */
  told = false;
  /** Bytes held in memory, counted by the recorder. */
  held = 0;
  /** It is in the recorder's list of exchanges that run or wait to be written. */
  listed = false;
  before: Capture | undefined;
  next: Capture | undefined;
  place: QueuePlace<Capture> | undefined;
  #readers: (() => void)[] | undefined;
  readonly #literals: readonly string[];
  #secrets: KnownSecrets | undefined;
  readonly #startedAt = performance.now();
  #exchange: RecordedExchange | undefined;
  #clientResponse: StageBody | undefined;
  #model: string | undefined;
  #currentTry:
    | { readonly hop: number; readonly attempt: number; readonly bodies: StageBody[] }
    | undefined;

  constructor(
    exchange: RecordedExchange,
    private readonly hooks: CaptureHooks,
  ) {
    this.id = exchange.id;
    this.entry = exchange.protocol.name;
    this.time = hooks.now();
    this.owner = exchange.owner;
    this.address = exchange.address;
    this.#literals = hooks.literals();
    this.blanked = hooks.blank();
    this.#exchange = exchange;
    const { headers } = exchange;
    const request = this.#body('client-request', false, { at: this.#now() }, { headers });
    this.#push(request, exchange.body);
    this.#close(request);
  }

  /** The model that the client asked for; undefined until it is known. */
  get model(): string | undefined {
    return this.outcome?.model ?? this.#model;
  }

  hop(hop: number, attempt: number, sent: SentRequest): HopRecording {
    if (this.#over) return IGNORED;
    this.#model = sent.model;
    this.hooks.onRoute(this, sent.route);
    const prefix = hop > 1 ? `hop${hop}-` : '';
    const before = this.#currentTry;
    // The earlier try did not count: its stages get the number of the try.
    if (before?.hop === hop) {
      for (const body of before.bodies) {
        body.stage = body.stage.replace(prefix, `${prefix}try${before.attempt}-`);
      }
    }
    const bodies: StageBody[] = [];
    this.#currentTry = { hop, attempt, bodies };
    const { url, headers, target } = sent;
    // What goes to another endpoint is of no protocol that could read it.
    const protocol = protocolOf(this.entry) && target.protocol;
    const open = (stage: string, sse: boolean, raw?: UnmaskedFacts) => {
      const facts = { hop, try: attempt, at: this.#now(), protocol, target: targetName(target) };
      const body = this.#body(prefix + stage, sse, facts, raw);
      bodies.push(body);
      return body;
    };
    const request = open('provider-request', false, { url, headers });
    for (const piece of bytePieces(sent.body)) this.#push(request, piece);
    this.#close(request);
    let answer: StageBody | undefined;
    return {
      connected: () => {
        if (!this.#over) request.facts.connected = this.#now();
      },
      start: (status, answered) => {
        if (this.#over || answer !== undefined) return;
        const stage = status >= 400 ? 'provider-error' : 'provider-response';
        answer = open(stage, isSse(answered), { headers: answered });
        answer.facts.status = status;
      },
      chunk: (chunk) => {
        if (answer !== undefined) this.#push(answer, chunk);
      },
      end: (error) => {
        if (this.#over || answer?.over === true) return;
        if (answer === undefined) {
          if (error === undefined) return;
          answer = open('provider-error', false);
          answer.facts.made = true;
          this.#push(answer, Buffer.from(JSON.stringify({ error: madeError(error) })));
        }
        if (error !== undefined) answer.facts.error = sampleError(error);
        this.#close(answer);
      },
    };
  }

  space(space: string): void {
    if (!this.#over) this.memorySpace = space;
  }

  tool(run: ToolRun): void {
    if (this.#over) return;
    const { started = performance.now() - (run.ms ?? 0), ...told } = run;
    this.tools.push({ ...told, at: round(Math.max(0, started - this.#startedAt)) });
  }

  clientStart(status: number, headers: ReadonlyHeaders): void {
    if (this.#over || this.#clientResponse !== undefined) return;
    const facts = { status, at: this.#now() };
    this.#clientResponse = this.#body('client-response', isSse(headers), facts, { headers });
  }

  clientChunk(chunk: Uint8Array | string): void {
    if (this.#clientResponse === undefined) return;
    this.#push(this.#clientResponse, typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  }

  end(rest: ExchangeOutcome): void {
    if (this.#over) return;
    this.outcome = rest;
    for (const body of this.stages) this.#close(body);
    this.hooks.onEnd(this);
  }

  /**
   * Masks headers and URLs and learns from them what to mask in bodies. It must run before anything is
   * written; no exchange waits for it.
   */
  prepare(): void {
    if (this.#exchange !== undefined) {
      const { sessionId, search } = this.#exchange;
      this.#exchange = undefined;
      this.session = sessionId;
      this.search = search === '' ? '' : this.secrets.url(search);
    }
    for (const body of this.stages) {
      if (body.raw === undefined) continue;
      const { headers, url } = body.raw;
      body.raw = undefined;
      if (url !== undefined) body.facts.url = this.secrets.url(url);
      const masked = this.secrets.headers(headers);
      this.masked += masked.count;
      body.facts.headers = masked.headers;
    }
  }

  /** Releases everything; nothing will be written. */
  drop(): void {
    this.disposition = 'discard';
    for (const body of this.stages) body.release();
    this.#exchange = undefined;
  }

  /** Called back once what is masked of this running exchange is written. */
  addReader(reader: () => void): void {
    this.#readers ??= [];
    this.#readers.push(reader);
  }

  takeReaders(): readonly (() => void)[] {
    const taken = this.#readers ?? NO_READERS;
    this.#readers = undefined;
    return taken;
  }

  get dropped(): boolean {
    return this.disposition === 'discard';
  }

  /** Some of its files exist and would have to be removed. */
  get onDisk(): boolean {
    return this.announced || this.stages.some(({ file }) => file !== undefined);
  }

  /** Bytes of all bodies and of what is known of them. */
  get size(): number {
    return this.stages.reduce((sum, { bytes }) => sum + bytes + STAGE_OVERHEAD_BYTES, 0);
  }

  get secrets(): KnownSecrets {
    this.#secrets ??= new KnownSecrets(this.#literals);
    return this.#secrets;
  }

  get #over(): boolean {
    return this.outcome !== undefined || this.dropped;
  }

  #now(): number {
    return round(performance.now() - this.#startedAt);
  }

  #body(stage: string, sse: boolean, facts: StageFacts, raw?: UnmaskedFacts): StageBody {
    const body = new StageBody(stage, sse, facts, this);
    body.raw = raw;
    this.stages.push(body);
    if (!this.dropped) this.hooks.hold(this, STAGE_OVERHEAD_BYTES);
    return body;
  }

  #push(body: StageBody, chunk: Uint8Array): void {
    if (this.#over || body.over || chunk.length === 0) return;
    const room = this.hooks.bodyBytes - body.bytes;
    if (chunk.length > room) body.facts.cut = true;
    const taken = chunk.length > room ? firstOf(chunk, Math.max(0, room)) : chunk;
    if (taken.length === 0 || !this.hooks.hold(this, taken.length)) return;
    // Only answers arrive in parts: a request is complete when it begins.
    if (body.facts.status !== undefined) {
      const now = this.#now();
      if (body.bytes === 0) body.facts.first = now;
      body.timings?.add(body.bytes, now);
    }
    body.push(taken);
  }

  #close(body: StageBody): void {
    if (body.over) return;
    body.over = true;
    body.facts.until = this.#now();
    const pace = body.timings?.text ?? '';
    if (pace !== '') body.facts.pace = pace;
  }
}

/** A view keeps the whole chunk in memory: a copy, where most of that is cut. */
function firstOf(chunk: Uint8Array, most: number): Uint8Array {
  const first = chunk.subarray(0, most);
  return chunk.length > 2 * most ? new Uint8Array(first) : first;
}

const NO_READERS: readonly (() => void)[] = [];

const IGNORED: HopRecording = { connected() {}, start() {}, chunk() {}, end() {} };

const isSse = (headers: ReadonlyHeaders) =>
  (headers.get('content-type') ?? '').includes('event-stream');

const madeError = ({ kind, message }: GatewayError) => ({ kind, message });
