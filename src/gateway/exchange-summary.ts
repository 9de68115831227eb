/** Collects the summary of an exchange, for the log, the metrics and the recording. */

import { type GatewayError, isClientGone } from '../conversation/errors.ts';
import type { FinishReason } from '../conversation/events.ts';
import { type Note, Notes } from '../conversation/notes.ts';
import type { Usage } from '../conversation/usage.ts';
import type { FlatHeaders } from '../lib/http/headers.ts';
import type { Recording } from '../samples/recording.ts';
import type { Account } from './account.ts';
import type { Exchange, Outcome, SummarizedRequest, Summary } from './types.ts';

/** The part of an outcome that the summary needs. Model protocols and other endpoints both have it. */
type SummarizedOutcome = Pick<Outcome, 'target' | 'notes'>;

const NONE: readonly never[] = [];

export class ExchangeSummaryBuilder {
  #request: SummarizedRequest | undefined;
  #answer: SummarizedOutcome | undefined;
  #route: string | undefined;
  #tries = 0;
  #hops = 0;
  // Kept, not copied: while a stream runs more is noted.
  #noted: Notes | undefined;
  #notedBefore: readonly Notes[] = NONE;
  #firstByte: number | undefined;
  #queue: number | undefined;
  #sent = false;
  #leave: (() => void) | undefined;
  #over = false;
  #account: Account | undefined;

  constructor(
    private readonly exchange: Exchange,
    readonly recording: Recording | undefined,
    private readonly onEnd: (summary: Summary) => void,
  ) {}

  received(request: SummarizedRequest): void {
    this.#request = request;
  }

  /** Its account is open. */
  opened(account: Account): void {
    this.#account = account;
  }

  /** Adds what the account tells the client. `whole`: the answer is complete, and its cost is known. */
  addHeaders(headers: FlatHeaders, whole: boolean): void {
    this.#account?.addHeaders(headers, whole);
  }

  /** It is this exchange's turn; `leave` gives its place to the next. */
  admitted(leave: () => void): void {
    this.#queue = this.#since();
    this.#leave = leave;
  }

  /** The first request goes to an upstream: no more waiting for a turn there. */
  sent(): void {
    if (this.#sent) return;
    this.#sent = true;
    this.#queue = this.#since();
  }

  /** The name of the route that chose the targets. */
  routed(routeName: string | undefined): void {
    this.#route = routeName;
  }

  /** A hop has its answer. */
  hopEnded(answer: SummarizedOutcome, tries: number): void {
    this.#answer = answer;
    this.#tries += tries;
    this.#hops++;
    if (answer.notes === undefined) return;
    if (this.#noted !== undefined) this.#notedBefore = [...this.#notedBefore, this.#noted];
    this.#noted = answer.notes;
  }

  /** With those of the hops before: what this gateway says of the exchange as a whole. */
  notesWith(last: Notes | undefined): Notes | undefined {
    const isFirst = this.#notedBefore.length === 0 && (last ?? this.#noted) === this.#noted;
    if (isFirst) return this.#noted;
    const all = new Notes();
    all.join(this.#notes());
    if (last !== undefined && last !== this.#noted) all.join(last.all);
    return all;
  }

  firstByte(): void {
    this.#firstByte ??= this.#since();
  }

  /** Hands out the summary; only the first call counts. */
  end(
    status: number,
    usage: Usage | undefined,
    error: GatewayError | undefined,
    finish?: FinishReason,
  ): void {
    if (this.#over) return;
    this.#over = true;
    this.#leave?.();
    this.#account?.end(status === 499 ? 'client_gone' : 'cut');
    const summary: Summary = {
      exchange: this.exchange,
      queue: this.#queue,
      request: this.#request,
      finish,
      model: this.#request?.model,
      target: this.#answer?.target,
      route: this.#route,
      status,
      stream: this.#request?.stream ?? false,
      firstByte: this.#firstByte,
      total: this.#since(),
      tries: this.#tries,
      usage,
      cost: this.#account?.cost,
      lost: this.#account?.lost,
      hops: this.#hops,
      notes: this.#notes(),
      error: error && isClientGone(error) ? undefined : error,
    };
    this.recording?.end(summary);
    this.onEnd(summary);
  }

  #notes(): readonly Note[] {
    const last = this.#noted?.all ?? NONE;
    if (this.#notedBefore.length === 0) return last;
    return [...this.#notedBefore.flatMap(({ all }) => all), ...last];
  }

  #since(): number {
    return performance.now() - this.exchange.started;
  }
}
