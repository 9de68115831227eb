/** Limits in the running program: what the holder of a key sees, from every process. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { UsageReport } from '../../src/limits/usage-report.ts';
import { startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream/index.ts';

setDefaultTimeout(60_000);

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterAll(() => upstream.stop());

const KEY = 'key-of-the-build-server';

const config = (workers: number) =>
  threeProviders(upstream, {
    workers,
    auth: {
      admin_keys: ['key-of-the-admin'],
      keys: [
        {
          name: 'ci',
          key: KEY,
          labels: { team: 'web' },
          limits: { requests_per_minute: 60, concurrent: 3 },
          budgets: [{ usd: 5, per: 'day', time_zone: 'Asia/Kolkata' }],
        },
      ],
    },
    budgets: [{ name: 'web-team', keys: { team: 'web' }, usd: 200, per: 'month' }],
  });

for (const workers of [1, 2]) {
  describe(`with ${workers} process${workers === 1 ? '' : 'es'}`, () => {
    test('the holder of a key sees its limits and budgets, others do not', async () => {
      const gateway = await startGateway(config(workers));
      try {
        const usage = (key: string) =>
          fetch(`${gateway.url}/v1/usage`, {
            headers: { authorization: `Bearer ${key}`, connection: 'close' },
          });
        // New connections reach every process.
        const answers = await Promise.all(Array.from({ length: 40 }, () => usage(KEY)));
        expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200));
        const reports = (await Promise.all(answers.map((one) => one.json()))) as UsageReport[];
        const [report] = reports;
        expect(report!.key).toBe('ci');
        expect(report!.limits).toEqual([
          { limit: 'requests_per_minute', amount: 60, used: 0, remaining: 60, reset_seconds: 0 },
          { limit: 'concurrent', amount: 3, used: 0, remaining: 3, reset_seconds: null },
        ]);
        expect(
          report!.budgets.map(({ usd, remaining_usd, per }) => [usd, remaining_usd, per]),
        ).toEqual([
          [5, 5, 'day'],
          [200, 200, 'month'],
        ]);
        expect(report!.budgets[0]!.resets_at).toMatch(/T18:30:00Z$/);
        for (const other of reports) expect(other).toEqual(report!);
        expect((await usage('wrong')).status).toBe(401);
        expect((await usage('key-of-the-admin')).status).toBe(401);
        const budgets = await fetch(`${gateway.url}/admin/v1/budgets`, {
          headers: { authorization: 'Bearer key-of-the-admin' },
        });
        expect(await budgets.json()).toMatchObject({
          object: 'list',
          data: [{ name: 'web-team', usd: 200 }, { usd: 5 }],
        });
      } finally {
        expect(await gateway.stop()).toBe(0);
      }
    });
  });
}
