/** Three replicas of the program with shared samples: the page and the commands of each see the exchanges of all, live ones too; erasures reach all. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { tracesIn } from '../samples/replicas/replica.ts';
import { binary, cleanEnv, type Gateway, startGateway } from '../support/binary.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import {
  type DatabaseServer,
  HAS_BOUNCER,
  HAS_POSTGRES,
  startBouncer,
  startPostgres,
} from '../support/engines/database-servers.ts';
import {
  HAS_OBJECTS,
  OBJECTS_KEY,
  OBJECTS_SECRET,
  type ObjectServer,
  startObjects,
} from '../support/engines/object-servers.ts';
import type { Server } from '../support/engines/processes.ts';
import { until } from '../support/until.ts';

const KEY = 'key-of-ann';

interface Row {
  readonly id: string;
  readonly state: string;
  readonly session: string;
}

describe.skipIf(!HAS_CACHE || !HAS_POSTGRES || !HAS_BOUNCER || !HAS_OBJECTS)(
  'three replicas with shared samples',
  () => {
    let cache: Server;
    let database: DatabaseServer;
    let bouncer: DatabaseServer;
    let objects: ObjectServer;
    let vendor: ReturnType<typeof Bun.serve>;
    let replicas: readonly Gateway[] = [];
    /** An answer to "wait" comes when it is released. */
    let gate = Promise.withResolvers<void>();

    beforeAll(async () => {
      [cache, database, objects] = await Promise.all([
        startCache(),
        startPostgres(),
        startObjects(),
        binary(),
      ]);
      bouncer = await startBouncer(database);
      vendor = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        idleTimeout: 0,
        async fetch(request) {
          const asked = await request.text();
          if (asked.includes('please wait')) await gate.promise;
          const message = { role: 'assistant', content: 'Noted: quinces are yellow.' };
          return Response.json({
            id: 'c',
            object: 'chat.completion',
            created: 1,
            model: 'm1',
            choices: [{ index: 0, message, finish_reason: 'stop' }],
            usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
          });
        },
      });
      const config = {
        providers: {
          vendor: {
            protocol: 'openai-chat',
            base_url: `http://127.0.0.1:${vendor.port}/v1`,
            keys: ['sk-upstream'],
            models: ['m1'],
          },
        },
        samples: { mode: 'all' },
        auth: { keys: [{ name: 'ann', key: KEY, sees: 'all' }] },
        engines: {
          cache: `redis://127.0.0.1:${cache.port}`,
          database: bouncer.url,
          objects: `s3://${OBJECTS_KEY}:${OBJECTS_SECRET}@${objects.bucket}/prod?region=us-east-1&endpoint=${objects.endpoint}`,
          seal: ['the secret of these replicas, long enough to seal'],
        },
      };
      replicas = await Promise.all(
        Array.from({ length: 3 }, () => startGateway(config, { patience: 60_000 })),
      );
    });
    afterAll(async () => {
      await Promise.all(replicas.map((one) => one.stop()));
      await vendor.stop(true);
      await bouncer.stop();
      await Promise.all([cache.stop(), database.stop(), objects.stop()]);
    });

    const headers = { authorization: `Bearer ${KEY}`, 'x-hopgate-ui': '1' };
    const ask = async ({ url }: Gateway, words: string, more: object = {}) => {
      const answer = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers,
        body: JSON.stringify({
          model: 'm1',
          messages: [{ role: 'user', content: words }],
          ...more,
        }),
      });
      await answer.arrayBuffer();
      return answer.headers.get('x-hopgate-request-id') ?? '';
    };
    const get = async <T>({ url }: Gateway, path: string): Promise<T> =>
      (await fetch(`${url}/ui/api${path}`, { headers })).json() as Promise<T>;
    const list = async (gateway: Gateway, query = '') =>
      (await get<{ rows: readonly Row[] }>(gateway, `/samples?limit=100${query}`)).rows;
    const listed = (gateway: Gateway, id: string) =>
      until(async () => (await list(gateway)).find((row) => row.id === id && row.state === 'done'));
    async function command({ home, configPath }: Gateway, ...args: readonly string[]) {
      const run = Bun.spawn([await binary(), ...args, '--config', configPath], {
        cwd: home,
        env: cleanEnv(home),
        stdout: 'pipe',
        stderr: 'pipe',
      });
      const [stdout, stderr] = await Promise.all([
        new Response(run.stdout).text(),
        new Response(run.stderr).text(),
      ]);
      return { code: await run.exited, stdout, stderr };
    }

    test('an exchange of one replica is listed, searched, opened, and counted by the page of another', async () => {
      const [a, b] = replicas as [Gateway, Gateway];
      const id = await ask(a, 'what colour are medlars');
      await listed(b, id);
      const found = await until(async () => {
        const rows = await list(b, '&q=medlars');
        return rows.length > 0 && rows;
      });
      expect(found.map((row) => row.id)).toEqual([id]);
      const detail = await get<{ meta: { edges: { stage: string }[] } }>(b, `/samples/${id}`);
      expect(detail.meta.edges.map(({ stage }) => stage)).toContain('provider-response');
      const raw = await fetch(`${b.url}/ui/api/samples/${id}/edges/client-request`, { headers });
      expect(await raw.text()).toContain('what colour are medlars');
      const { stories } = await get<{ stories: { asked: string; answered: string }[] }>(
        b,
        `/stories?ids=${id}`,
      );
      expect(stories[0]).toMatchObject({
        asked: 'what colour are medlars',
        answered: 'Noted: quinces are yellow.',
      });
      expect(JSON.stringify(await get(b, '/stats?since=1h'))).toContain('vendor/m1');
    });

    test('a sample of another replica is shown and replayed by command', async () => {
      const [a, , c] = replicas as [Gateway, Gateway, Gateway];
      const id = await ask(a, 'how sour are sloes');
      await listed(c, id);
      const shown = await command(c, 'samples', 'show', id);
      expect([shown.code, shown.stderr]).toEqual([0, '']);
      expect(shown.stdout).toContain(id);
      const replayed = await command(c, 'replay', id, '--json');
      expect([replayed.code, replayed.stderr]).toEqual([
        0,
        expect.stringContaining('Sends 1 request'),
      ]);
      expect(replayed.stdout).toContain('quinces');
    });

    test('an exchange that runs on one replica is in the list of another, opens there, and ends there', async () => {
      const [a, b] = replicas as [Gateway, Gateway];
      gate = Promise.withResolvers<void>();
      const answered = ask(a, 'please wait');
      const row = await until(async () => (await list(b)).find(({ state }) => state === 'open'));
      const detail = await get<{ meta: { state: string; model: string } }>(b, `/samples/${row.id}`);
      expect(detail.meta).toMatchObject({ state: 'open', model: 'm1' });
      gate.resolve();
      expect(await answered).toBe(row.id);
      await listed(b, row.id);
      expect((await list(b)).filter(({ id }) => id === row.id)).toHaveLength(1);
      await until(async () => (await list(b)).every(({ state }) => state !== 'open'));
    });

    test('what runs on a replica that dies leaves the lists of the others', async () => {
      const [a, b, c] = replicas as [Gateway, Gateway, Gateway];
      gate = Promise.withResolvers<void>();
      const lost = ask(c, 'please wait').catch(() => undefined);
      const row = await until(async () => (await list(a)).find(({ state }) => state === 'open'));
      c.signal('SIGKILL');
      await c.exited;
      await lost;
      gate.resolve();
      const isOpen = async (one: Gateway) => (await list(one)).some(({ id }) => id === row.id);
      await until(async () => !(await isOpen(a)) && !(await isOpen(b)));
    }, 90_000);

    test('an erased memory space leaves no trace on any replica or in any engine', async () => {
      const [a, b] = replicas as [Gateway, Gateway];
      const hopgate = { memory: { space: 'ann-space', recall: 'always', capture: false } };
      const ids = [
        await ask(a, 'the persimmons of ann', { hopgate }),
        await ask(b, 'more persimmons of ann', { hopgate }),
      ];
      for (const one of [a, b]) for (const id of ids) await listed(one, id);
      // Opened and searched: bodies and index of the other one are filled, too.
      for (const id of ids) await get(a, `/samples/${id}`);
      await until(async () => (await list(a, '&q=persimmons')).length === 2);
      const folder = ({ home }: Gateway) => join(home, 'state');
      expect(tracesIn(folder(a), 'persimmons').length).toBeGreaterThan(0);

      const erased = await fetch(`${a.url}/v1/memory/ann-space`, { method: 'DELETE', headers });
      expect([erased.status, await erased.json()]).toEqual([
        200,
        expect.objectContaining({ samples: 2 }),
      ]);
      for (const id of ids) {
        // Its log names what was asked for.
        expect(tracesIn(objects.folder, id).filter((path) => !path.endsWith('.log'))).toEqual([]);
      }
      for (const one of [a, b]) {
        await until(() => tracesIn(folder(one), 'persimmons').length === 0);
        await until(() => tracesIn(folder(one), 'ann-space').length === 0);
        expect((await list(one)).filter(({ id }) => ids.includes(id))).toEqual([]);
      }
      await until(() => existsSync(join(folder(b), 'state', 'erasures.json')));
    });
  },
);
