/** Measures what the pages for administrators load, over a gateway with a million spend rows: each page's requests together. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KeyChanges } from '../src/keys/key-changes.ts';
import { openKeyFile } from '../src/keys/run-time-keys.ts';
import { fileStore } from '../src/money/spend-store.ts';
import { startInProcess } from '../test/support/in-process.ts';
import { putRows } from '../test/support/spend-rows.ts';
import { type BenchKey, spendRows } from './spend-rows.ts';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const KEYS = Number(process.argv[3] ?? 200);
/** Milliseconds that a page may take. */
const GOAL_MS = 300;
const ADMIN = 'an-admin-key-of-the-bench';

const home = mkdtempSync(join(tmpdir(), 'hopgate-admin-pages-'));
mkdirSync(join(home, 'state'));

const keyStore = openKeyFile(join(home, 'state', 'keys.db'));
const changes = new KeyChanges({
  place: { store: keyStore, changed: () => {} },
  routes: () => [],
});
const keys: BenchKey[] = [];
for (let i = 0; i < KEYS; i++) {
  const labels = { team: `team-${i % 10}` };
  const budgets = [{ usd: 100, per: 'month' }];
  const { view } = await changes.create({ name: `key ${i}`, labels, budgets }, { actor: 'bench' });
  keys.push({ id: view.id, labels });
}
keyStore.close();

const rowAt = spendRows(ROWS, keys, Date.now());
const store = fileStore(join(home, 'state', 'spend.db'));
await putRows(
  store,
  Array.from({ length: ROWS }, (_, n) => rowAt(n)),
);
store.close();

const gateway = await startInProcess(
  {
    providers: { demo: { protocol: 'openai-chat', base_url: 'demo:', models: ['demo'] } },
    samples: { mode: 'off' },
    auth: { admin_keys: [ADMIN] },
  },
  home,
);

/** What the pages ask for, each at once. */
const PAGES: Readonly<Record<string, readonly string[]>> = {
  keys: ['keys?limit=200', 'usage?by=key&from=30d&limit=2000'],
  budgets: ['budgets?limit=1000'],
  'usage by key': ['usage?by=key&from=30d&limit=200', 'usage?by=key&from=30d&step=day&top=7'],
  'usage by label': [
    'usage?by=label.team&from=30d&limit=200',
    'usage?by=label.team&from=30d&step=day&top=7',
  ],
  'usage by hour': ['usage?by=key&from=7d&limit=200', 'usage?by=key&from=7d&step=hour&top=7'],
  'usage by session': [
    'usage?by=session&from=30d&limit=200',
    'usage?by=session&from=30d&step=day&top=7',
  ],
  health: ['health'],
  audit: ['audit?limit=100', 'audit/verify'],
};

async function load(paths: readonly string[]): Promise<number> {
  const began = performance.now();
  await Promise.all(
    paths.map(async (path) => {
      const answer = await fetch(`${gateway.url}/admin/v1/${path}`, {
        headers: { authorization: `Bearer ${ADMIN}` },
      });
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
      await answer.json();
    }),
  );
  return performance.now() - began;
}

let slow = false;
console.log(`${ROWS} rows, ${KEYS} keys; first load, median of seven`);
for (const [name, paths] of Object.entries(PAGES)) {
  const times: number[] = [];
  for (let i = 0; i < 7; i++) times.push(await load(paths));
  const median = times.toSorted((a, b) => a - b)[3]!;
  slow ||= median > GOAL_MS;
  console.log(`${name}: ${Math.round(times[0]!)} ms, ${Math.round(median)} ms`);
}
await gateway.stop();
rmSync(home, { recursive: true, force: true });
process.exit(slow ? 1 : 0);
