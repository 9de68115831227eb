/** One machine to shared engines and back, live, by the program itself: keys work, and budgets and reports are what the vendor bills. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { binary, type Gateway, runBinary, startGateway } from '../support/binary.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { filesIn } from '../support/moves.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(180_000);

const ADMIN = 'an-admin-key-of-tests';
const KINDS = 'keys,audit,budgets,spend';

interface Moved {
  readonly name: string;
  readonly copied?: number;
  readonly before?: { readonly items: number; readonly missing: number };
  readonly after?: { readonly missing: number };
  readonly problem?: string;
}

describe.skipIf(!HAS_POSTGRES)('state move', () => {
  let database: DatabaseServer;
  let vendor: ReturnType<typeof Bun.serve>;
  let folder: string;
  const running = new Set<Gateway>();
  /** Tokens, each of which costs a dollar, by the model that was asked for. */
  const bill = new Map<string, number>();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hopgate-state-move-'));
    [database] = await Promise.all([startPostgres(), binary()]);
    let asked = 0;
    vendor = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      async fetch(request) {
        const { model } = (await request.json()) as { readonly model: string };
        const tokens = 1 + (++asked % 7);
        bill.set(model, (bill.get(model) ?? 0) + tokens);
        await Bun.sleep(asked % 5);
        const usage = { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens };
        const message = { role: 'assistant', content: 'Fine.' };
        const choices = [{ index: 0, message, finish_reason: 'stop' }];
        return Response.json({
          ...{ id: 'c', object: 'chat.completion', created: 1, model, choices, usage },
        });
      },
    });
  });
  afterAll(async () => {
    for (const one of running) await one.stop();
    await vendor.stop(true);
    await database.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const home = (name: string) => ({ HOPGATE_HOME: join(folder, name) });
  const configOf = (shared: boolean) => ({
    providers: {
      vendor: {
        protocol: 'openai-chat',
        base_url: `http://127.0.0.1:${vendor.port}/v1`,
        keys: ['sk-upstream'],
        models: ['m0', 'm1', 'm2'],
        prices: Object.fromEntries(
          ['m0', 'm1', 'm2'].map((model) => [model, { input: 1e6, output: 0 }]),
        ),
      },
    },
    samples: { mode: 'off' },
    retry: { attempts: 1, base_delay: 0.02 },
    auth: { admin_keys: [ADMIN] },
    ...(shared && { engines: { database: database.url } }),
  });
  async function start(name: string, shared: boolean): Promise<Gateway> {
    const gateway = await startGateway(configOf(shared), { patience: 60_000, env: home(name) });
    running.add(gateway);
    return gateway;
  }
  async function stop(gateway: Gateway): Promise<void> {
    running.delete(gateway);
    await gateway.stop();
  }
  async function admin({ url }: Gateway, method: string, path: string, body?: object) {
    const answer = await fetch(`${url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN}`, connection: 'close' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: the test looks at JSON of many shapes
    return (await answer.json()) as any;
  }
  async function ask({ url }: Gateway, key: string, model = 'm0'): Promise<number> {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, connection: 'close' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
    });
    await answer.arrayBuffer();
    return answer.status;
  }
  /** Each key asks for its own model, all at once, until what is done meanwhile is done. */
  async function under<T>(gateway: Gateway, keys: readonly string[], work: () => Promise<T>) {
    let over = false;
    const asking = keys.map(async (key, n) => {
      while (!over) expect(await ask(gateway, key, `m${n}`)).toBe(200);
    });
    try {
      return await work();
    } finally {
      over = true;
      await Promise.all(asking);
    }
  }
  async function move(name: string, to: string, ...more: readonly string[]) {
    const path = join(folder, 'with-engines.yaml');
    await Bun.write(path, JSON.stringify({ listen: '127.0.0.1:0', ...configOf(true) }));
    const args = ['state', 'move', '--to', to, '--only', KINDS, '--json', '--config', path];
    const { code, stdout, stderr } = await runBinary([...args, ...more], { env: home(name) });
    if (stdout === '') throw new Error(stderr);
    const { state } = JSON.parse(stdout) as { readonly state: readonly Moved[] };
    for (const { problem } of state) expect(problem).toBeUndefined();
    return { code, of: (kind: string) => state.find((one) => one.name === kind)! };
  }
  /** Of the month, by model, as the vendor bills it. */
  async function expectBilled(gateway: Gateway, ids: readonly string[]): Promise<void> {
    const usage = await admin(gateway, 'GET', '/usage?by=model');
    // biome-ignore lint/suspicious/noExplicitAny: as above
    const costs = usage.data.map((one: any) => [one.name, one.cost_usd]);
    expect(new Map(costs)).toEqual(bill);
    const byKey = await admin(gateway, 'GET', '/usage?by=key');
    for (const [n, id] of ids.entries()) {
      // biome-ignore lint/suspicious/noExplicitAny: as above
      expect(byKey.data.find((one: any) => one.name === id).cost_usd).toBe(bill.get(`m${n}`));
    }
  }
  async function expectLeft({ url }: Gateway, keys: readonly string[]): Promise<void> {
    for (const [n, key] of keys.entries()) {
      const answer = await fetch(`${url}/v1/usage`, {
        headers: { authorization: `Bearer ${key}`, connection: 'close' },
      });
      const { budgets } = (await answer.json()) as { budgets: { remaining_usd: number }[] };
      expect(budgets[0]!.remaining_usd).toBe(1e6 - bill.get(`m${n}`)!);
    }
  }

  test('a machine goes to the engines under load and comes back: every dollar is counted once', async () => {
    const alone = await start('a', false);
    const made = [];
    for (const name of ['one', 'two', 'three']) {
      const budgets = [{ usd: 1e6, per: 'total' }];
      made.push(await admin(alone, 'POST', '/keys', { name, budgets }));
    }
    const ids: string[] = made.map(({ id }) => id);
    const keys: string[] = made.map(({ key }) => key);
    const gone = await admin(alone, 'POST', '/keys', { name: 'gone' });
    await admin(alone, 'DELETE', `/keys/${gone.id}`);

    const chain = await admin(alone, 'GET', '/audit/verify');
    await under(alone, keys, async () => {
      await Bun.sleep(1500);
      const dry = await move('a', 'engines', '--dry-run');
      expect(dry.code).toBe(0);
      expect(dry.of('keys')).toMatchObject({ before: { items: 4, missing: 4 }, copied: 0 });
      expect(dry.of('audit')).toMatchObject({ before: { items: 5, missing: 5 } });
      expect((await move('a', 'engines')).of('keys')).toMatchObject({ copied: 4 });
      await Bun.sleep(1000);
    });
    await stop(alone);

    // Where it begins is where the old process ended, as soon as the command has run once more.
    const shared = await start('a', true);
    await until(async () => (await ask(shared, keys[0]!)) === 200);
    await under(shared, keys, async () => {
      await Bun.sleep(500);
      const again = await move('a', 'engines');
      expect(again.code).toBe(0);
      expect(again.of('keys')).toMatchObject({ copied: 0 });
      expect(again.of('audit')).toMatchObject({ copied: 0 });
      expect(again.of('budgets').copied).toBeGreaterThan(0);
      expect(again.of('spend').copied).toBeGreaterThan(0);
      await Bun.sleep(1000);
    });
    expect(await ask(shared, gone.key)).toBe(401);
    await expectBilled(shared, ids);
    await expectLeft(shared, keys);
    const { data } = await admin(shared, 'GET', '/audit?limit=100');
    // biome-ignore lint/suspicious/noExplicitAny: as above
    const note = data.find((one: any) => one.action === 'audit.import');
    expect(note.after).toMatchObject({ from: 'file', entries: 5, head: chain.head });
    expect((await admin(shared, 'GET', '/audit/verify')).valid).toBe(true);
    const file = join(folder, 'a', 'state', 'keys.db');
    const checked = await runBinary(['audit', 'verify', '--file', file, '--json'], {
      env: home('a'),
    });
    expect(JSON.parse(checked.stdout)).toEqual({ count: 5, head: chain.head, fault: null });

    // Another replica, on another machine, spends too, and ends one of the keys.
    const other = await start('b', true);
    await until(async () => (await ask(other, keys[1]!, 'm1')) === 200);
    await under(other, keys, () => Bun.sleep(1000));
    await admin(other, 'DELETE', `/keys/${ids[2]}`);
    await Promise.all([stop(shared), stop(other)]);

    const files = filesIn(join(folder, 'a', 'state'));
    expect((await move('a', 'embedded', '--dry-run')).code).toBe(0);
    expect(filesIn(join(folder, 'a', 'state'))).toEqual(files);
    const back = await move('a', 'embedded');
    expect(back.code).toBe(0);
    expect(back.of('keys')).toMatchObject({ copied: 1 });
    expect((await move('a', 'embedded')).of('spend')).toMatchObject({ copied: 0 });
    const alone2 = await start('a', false);
    await expectBilled(alone2, ids);
    await expectLeft(alone2, keys.slice(0, 2));
    expect(await ask(alone2, keys[2]!)).toBe(401);
    await under(alone2, keys.slice(0, 2), () => Bun.sleep(500));
    await expectBilled(alone2, ids);
    expect((await admin(alone2, 'GET', '/audit/verify')).valid).toBe(true);
    await stop(alone2);

    // Once more there: the file's news, and nothing that came from there.
    expect((await move('a', 'engines')).code).toBe(0);
    const last = await start('a', true);
    await until(async () => (await ask(last, keys[0]!)) === 200);
    await expectBilled(last, ids);
    await expectLeft(last, keys.slice(0, 2));
    await stop(last);
  });
});
