/** Warnings of budgets: logged once, sent to a webhook, tried again where that can help, and never a secret in the log. */

import { afterEach, describe, expect, test } from 'bun:test';
import { BudgetNotices, type NoticeBody, type Reached } from '../../src/limits/notices.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { until } from '../support/until.ts';

const open: BudgetNotices[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

function setUp(answers: readonly (number | 'hang' | 'fail')[], timeoutMs = 5000) {
  const lines: Record<string, unknown>[] = [];
  const got: NoticeBody[] = [];
  const options: RequestInit[] = [];
  const log = createLog({ format: 'json', write: (line) => lines.push(JSON.parse(line)) });
  const notices = new BudgetNotices({
    log,
    pauses: [1, 1, 1],
    timeoutMs,
    fetch: (_url, init) => {
      const answer = answers[got.length] ?? answers.at(-1)!;
      got.push(JSON.parse(String(init.body)) as NoticeBody);
      options.push(init);
      if (answer === 'fail') return Promise.reject(new TypeError('cannot connect'));
      if (answer === 'hang') {
        return new Promise((_resolve, reject) => {
          init.signal?.addEventListener('abort', () => reject(init.signal?.reason));
        });
      }
      return Promise.resolve(new Response('thanks', { status: answer }));
    },
  });
  open.push(notices);
  return { notices, lines, got, options };
}

const reached = (mark: number, more: Partial<Reached['limit']> = {}): Reached => ({
  limit: {
    kind: 'window',
    id: 'budget:web',
    unit: 'nano_usd',
    amount: 20e9,
    per: 'day',
    timeZone: 'UTC',
    name: 'web-team',
    webhook: 'https://hooks.example.com/T0/secret-token?key=hidden',
    ...more,
  },
  mark,
  start: Date.parse('2026-06-10T00:00:00Z'),
  end: Date.parse('2026-06-11T00:00:00Z'),
  spent: 16.5e9,
});

describe('a warning', () => {
  test('says which budget, how much, and of which period', async () => {
    const { notices, got, lines, options } = setUp([200]);
    notices.reached(reached(16e9));
    notices.reached(reached(20e9));
    await until(() => got.length === 2);
    expect(got).toEqual([
      {
        event: 'budget.warned',
        id: 'budget:web/1781049600000/16000000000',
        budget: 'web-team',
        usd: 20,
        spent_usd: 16.5,
        share: 0.8,
        per: 'day',
        period_start: '2026-06-10T00:00:00Z',
        period_end: '2026-06-11T00:00:00Z',
      },
      expect.objectContaining({ event: 'budget.exhausted', share: 1 }) as never,
    ]);
    expect(options[0]).toMatchObject({ method: 'POST', redirect: 'manual' });
    expect(lines.map(({ event, level, share }) => [event, level, share])).toEqual([
      ['budget.warned', 'warn', 0.8],
      ['budget.exhausted', 'warn', 1],
    ]);
  });

  test('without a webhook it is only logged; a total has no period', async () => {
    const { notices, got, lines } = setUp([200]);
    const { webhook: _, ...limit } = reached(1).limit;
    notices.reached({ ...reached(10e9), limit });
    await Bun.sleep(20);
    expect(got).toEqual([]);
    expect(lines).toHaveLength(1);
    notices.reached(reached(10e9, { per: 'total' }));
    await until(() => got.length === 1);
    expect(got[0]).toMatchObject({ period_start: null, period_end: null });
  });

  test('a receiver that fails is asked again, with the same id', async () => {
    const { notices, got, lines } = setUp([503, 'fail', 200]);
    notices.reached(reached(16e9));
    await until(() => got.length === 3);
    await Bun.sleep(20);
    expect(got).toHaveLength(3);
    expect(new Set(got.map(({ id }) => id)).size).toBe(1);
    expect(lines).toHaveLength(1);
  });

  test('a receiver that refuses is not; the log names it without its path', async () => {
    const { notices, got, lines } = setUp([401]);
    notices.reached(reached(16e9));
    await until(() => lines.length === 2);
    expect(got).toHaveLength(1);
    expect(lines[1]).toMatchObject({
      event: 'budget.webhook.failed',
      webhook: 'https://hooks.example.com',
      why: 'HTTP 401',
    });
    expect(JSON.stringify(lines)).not.toContain('secret-token');
    expect(JSON.stringify(lines)).not.toContain('hidden');
  });

  test('a receiver that hangs is given up, and many of them do not pile up', async () => {
    const { notices, got, lines } = setUp(['hang'], 30);
    for (let i = 0; i < 150; i++) notices.reached(reached(16e9));
    await until(() => got.length === 400);
    await until(() => lines.length === 300);
    const failed = lines.filter(({ event }) => event === 'budget.webhook.failed');
    expect(failed).toHaveLength(150);
    expect(failed.filter(({ why }) => why === 'TimeoutError')).toHaveLength(100);
  });

  test('nothing is sent after the end', async () => {
    const { notices, got, lines } = setUp(['hang']);
    notices.reached(reached(16e9));
    await until(() => got.length === 1);
    notices.close();
    await Bun.sleep(30);
    expect(got).toHaveLength(1);
    expect(lines).toHaveLength(1);
  });
});
