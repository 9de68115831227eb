/** Marks of budgets, each reported once in a period over all processes: by a log line, and by a POST to the webhook of the budget. */

import { usdOf } from '../lib/text/usd.ts';
import { event, type Log } from '../telemetry/log.ts';
import type { Bank } from './bank.ts';
import type { Lease } from './lease.ts';
import type { WindowLimit } from './limits.ts';

export interface NoticesOptions {
  readonly log: Log;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Milliseconds before each further try of a webhook. */
  readonly pauses?: readonly number[];
  readonly timeoutMs?: number;
}

const PAUSES_MS = [1000, 5000, 25_000];
const TIMEOUT_MS = 10_000;
/** Webhooks under way; a receiver that hangs must not pile them up. */
const MAX_PENDING = 100;

/** The body of a webhook. `id` is the same for the same warning of the same period. */
export interface NoticeBody {
  readonly event: 'budget.warned' | 'budget.exhausted';
  readonly id: string;
  readonly budget: string;
  readonly usd: number;
  readonly spent_usd: number;
  /** The share of the amount that is reached; 1 when it is used up. */
  readonly share: number;
  readonly per: string;
  readonly period_start: string | null;
  readonly period_end: string | null;
}

export class BudgetNotices {
  readonly #closing = new AbortController();
  #pending = 0;

  constructor(private readonly options: NoticesOptions) {}

  /** Once for each mark and period. */
  reached(reached: Reached): void {
    const body = noticeBody(reached);
    const { log } = this.options;
    const { budget, usd, spent_usd, share, per } = body;
    const fields = { budget, usd, spent_usd, share, per };
    if (body.event === 'budget.warned') event(log, 'budget.warned', fields, 'warn');
    else event(log, 'budget.exhausted', fields, 'warn');
    const { webhook } = reached.limit;
    if (webhook === undefined) return;
    if (this.#pending >= MAX_PENDING) {
      this.#failed(body, webhook, 'too many others are under way');
      return;
    }
    this.#pending++;
    void this.#send(body, webhook).finally(() => this.#pending--);
  }

  /** Webhooks that have not arrived are given up. */
  close(): void {
    this.#closing.abort();
  }

  async #send(body: NoticeBody, webhook: string): Promise<void> {
    const { pauses = PAUSES_MS, timeoutMs = TIMEOUT_MS } = this.options;
    let why = '';
    for (const pause of [0, ...pauses]) {
      if (pause > 0) await Bun.sleep(pause);
      if (this.#closing.signal.aborted) return;
      try {
        const answer = await this.options.fetch(webhook, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
          redirect: 'manual',
          signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), this.#closing.signal]),
        });
        await answer.body?.cancel();
        if (answer.ok) return;
        why = `HTTP ${answer.status}`;
        // A receiver that refuses once refuses again, unless it is busy.
        if (answer.status < 500 && answer.status !== 429 && answer.status !== 408) break;
      } catch (thrown) {
        why = thrown instanceof Error ? thrown.name : 'it failed';
      }
    }
    if (!this.#closing.signal.aborted) this.#failed(body, webhook, why);
  }

  /** Paths and queries of webhooks hold tokens: only the origin is logged. */
  #failed({ budget, share }: NoticeBody, webhook: string, why: string): void {
    const fields = { budget, share, webhook: new URL(webhook).origin, why };
    const { log } = this.options;
    event(log, 'budget.webhook.failed', fields, 'warn');
  }
}

function noticeBody({ limit, mark, start, end, spent }: Reached): NoticeBody {
  const time = (instant: number) =>
    limit.per === 'total' ? null : new Date(instant).toISOString().replace(/\.\d+Z$/, 'Z');
  return {
    event: mark >= limit.amount ? 'budget.exhausted' : 'budget.warned',
    id: `${limit.id}/${start}/${mark}`,
    budget: limit.name ?? limit.id,
    usd: usdOf(limit.amount),
    spent_usd: usdOf(spent),
    share: limit.amount === 0 ? 1 : Number((mark / limit.amount).toFixed(4)),
    per: limit.per,
    period_start: time(start),
    period_end: time(end),
  };
}

/** A mark of a window that was reached; reported once in a period. */
export interface Reached {
  readonly limit: WindowLimit;
  /** Units: one of the limit's marks, or its amount. */
  readonly mark: number;
  /** Of the period, milliseconds since 1970. */
  readonly start: number;
  readonly end: number;
  /** Units. */
  readonly spent: number;
}

export class Marks {
  /** @param onReached must not throw */
  constructor(
    private readonly bank: Pick<Bank, 'isNew'>,
    private readonly onReached: ((reached: Reached) => void) | undefined,
  ) {}

  /** Reports the marks that are spent now. */
  spent(lease: Lease): void {
    const { limit, spent, used, reported } = lease;
    const all = spent + used;
    if (all <= reported) return;
    let reached = all >= limit.amount ? limit.amount : 0;
    if (reached === 0) for (const mark of limit.marks ?? []) if (mark <= all) reached = mark;
    if (reached > 0) this.report(lease, reached);
  }

  /** Reports marks up to this one that are spent, and the amount itself even if it is only reserved. */
  report(lease: Lease, upTo: number): void {
    const onReached = this.onReached;
    if (upTo <= lease.reported || onReached === undefined) return;
    const last = lease.reported;
    lease.reported = upTo;
    const { limit, start, end, window } = lease;
    const spent = lease.spent + lease.used;
    for (const mark of [...(limit.marks ?? []), limit.amount]) {
      // A reservation can use up a window before any of its marks is spent.
      if (mark <= last || mark > upTo || (mark !== limit.amount && spent < mark)) continue;
      const reached = { limit, mark, start, end, spent };
      const isNew = this.bank.isNew(window, mark);
      if (isNew === true) onReached(reached);
      // If the bank cannot say whether another process was first, the mark is reported again.
      else if (isNew !== false) void isNew.catch(() => true).then((is) => is && onReached(reached));
    }
  }
}
