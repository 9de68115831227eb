/** Tells of budgets that are nearly or wholly spent: a log line, and a POST to the budget's webhook. */

import { usdOf } from '../lib/text/usd.ts';
import { event, type Log } from '../telemetry/log.ts';
import type { Reached } from './marks.ts';

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
