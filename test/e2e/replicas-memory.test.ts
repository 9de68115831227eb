/** Two replicas of the program with one memory: captured on one and recalled on the other, erased for both, sealed in the database. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Secret } from '../../src/config/secret.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { binary, type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';

setDefaultTimeout(120_000);

describe.skipIf(!HAS_POSTGRES)('two replicas with one memory', () => {
  let database: DatabaseServer;
  let upstream: FakeUpstream;
  let replicas: readonly [Gateway, Gateway];

  beforeAll(async () => {
    [database, upstream] = await Promise.all([startPostgres(), startFakeUpstream(), binary()]);
    upstream.answerWith(() => say('Noted.'));
    const config = threeProviders(upstream, {
      samples: { mode: 'off' },
      engines: { database: database.url, seal: ['a secret of both replicas, 32 characters long'] },
    });
    replicas = await Promise.all([startGateway(config), startGateway(config)]);
  });
  afterAll(async () => {
    await Promise.all((replicas ?? []).map((one) => one.stop()));
    await upstream.stop();
    await database.stop();
  });

  async function turn({ url }: Gateway, space: string, message: string): Promise<string> {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({
        model: 'via-chat',
        messages: [{ role: 'user', content: message }],
        hopgate: { memory: { space, recall: 'always', capture: true } },
      }),
    });
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.stringContaining('Noted')]);
    return text;
  }
  const ask = async ({ url }: Gateway, method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/v1/memory/${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const texts = async (gateway: Gateway, space: string) => {
    const { body } = await ask(gateway, 'GET', `${space}/events?limit=1000`);
    return (body.events as { text: string }[]).map(({ text }) => text);
  };
  const recalled = async (gateway: Gateway, space: string, query: string) => {
    const { body } = await ask(gateway, 'POST', `${space}/recall`, { query });
    return (body.events as { text: string }[]).map(({ text }) => text);
  };

  test('what is said on one is recalled on the other, and the same in both orders', async () => {
    const [one, other] = replicas;
    await turn(one, 'alice', 'Maya is allergic to peanuts, 玛雅对花生过敏');
    await until(async () => (await recalled(other, 'alice', '花生')).length === 1);
    // The model gets it, whichever replica has the turn.
    await turn(other, 'alice', 'What is Maya allergic to?');
    expect(JSON.stringify(upstream.modelRequests.at(-1)!.body)).toContain('玛雅对花生过敏');
    await turn(one, 'alice', 'The boat is red');
    await until(async () => (await texts(other, 'alice')).includes('The boat is red'));
    for (const query of ['Maya', '过敏', 'boat', 'allergy']) {
      expect(await recalled(one, 'alice', query)).toEqual(await recalled(other, 'alice', query));
    }
    const health = await fetch(`${one.url}/health/engines`);
    expect(await health.json()).toMatchObject({ engines: { database: { state: 'up' } } });
  });

  test('nothing of it can be read in the database', async () => {
    const reader = new PostgresDatabase({ url: new Secret(database.url) }, () => {});
    const rows = await reader.query<{ event: string; body: Uint8Array }>(
      'SELECT e::text AS event, body FROM hopgate.memory_events e',
      [],
      10_000,
    );
    const words = await reader.query<{ term: string }>(
      'SELECT term FROM hopgate.memory_terms',
      [],
      10_000,
    );
    await reader.close();
    expect([rows.length > 2, words.length > 10]).toEqual([true, true]);
    const stored = [
      ...rows.flatMap(({ event, body }) => [event, Buffer.from(body).toString()]),
      ...words.map(({ term }) => term),
    ].join('\n');
    for (const word of ['peanut', 'aya', '花生', '玛', 'boat', 'oted']) {
      expect([word, stored.includes(word)]).toEqual([word, false]);
    }
  });

  test('erased on one while the other captures: nothing comes back, and later turns are kept', async () => {
    const [one, other] = replicas;
    await turn(other, 'bob', 'the okapi is tall');
    await until(async () => (await texts(one, 'bob')).length > 0);
    // A turn that is running on the other replica when the space is erased.
    const release = Promise.withResolvers<void>();
    upstream.answerWith(async () => {
      await release.promise;
      return say('Noted.');
    });
    const seen = upstream.modelRequests.length;
    const running = Promise.all(
      Array.from({ length: 5 }, (_, at) => turn(other, 'bob', `the okapi number ${at} waits`)),
    );
    await until(() => upstream.modelRequests.length === seen + 5);
    expect((await ask(one, 'DELETE', 'bob')).body).toMatchObject({ erased: true });
    release.resolve();
    await running;
    upstream.answerWith(() => say('Noted.'));
    await Bun.sleep(500);
    await turn(other, 'bob', 'a new turn');
    await until(async () => (await texts(one, 'bob')).includes('a new turn'));
    for (const gateway of replicas) {
      expect((await texts(gateway, 'bob')).filter((text) => text.includes('okapi'))).toEqual([]);
    }
  });

  test('a frozen database: conversations go on, the API answers 503, and what was said is stored later', async () => {
    const [one, other] = replicas;
    database.freeze();
    try {
      await turn(one, 'carol', 'the heron is grey');
      const answer = await ask(one, 'POST', 'carol/recall', { query: 'heron' });
      expect(answer.status).toBe(503);
      expect((await fetch(`${one.url}/readyz`)).status).toBe(200);
    } finally {
      database.thaw();
    }
    await until(async () => {
      const { status, body } = await ask(other, 'POST', 'carol/recall', { query: 'heron' });
      return status === 200 && JSON.stringify(body).includes('the heron is grey');
    });
  });
});
