/** Conversations whose every request goes to another replica: vendors get what one process would have sent. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { cacheCommand, HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import type { Server } from '../support/engines/processes.ts';
import {
  type Answer,
  call,
  type FakeUpstream,
  type Protocol,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { type Replicas, startReplicas } from '../support/replicas.ts';
import { startToolServers, stopAll, type ToolServers, toolsOf } from '../support/tool-servers.ts';
import { until } from '../support/until.ts';
import { CLIENT_CHATS, PROTOCOLS, VIA } from './clients.ts';
import { OWN, SEARCH_CHATS } from './search-clients.ts';
import { sentHistory } from './sent-history.ts';

const SECRET = 'a secret of at least 32 characters';
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

const search = (query: string, id?: string) => ({
  name: 'web_search',
  arguments: { query },
  ...(id === undefined ? {} : { id }),
});
const weather = (city: string, id?: string) => ({
  name: OWN,
  arguments: { city },
  ...(id === undefined ? {} : { id }),
});
const thinking = (text: string, answer: Answer): Answer => ({
  ...answer,
  parts: [{ kind: 'reasoning', text, sealed: true }, ...answer.parts],
});

interface Talk {
  readonly url: string;
  readonly client: Protocol;
  readonly model: string;
  readonly stream: boolean;
  readonly answers: (...answers: Answer[]) => void;
}

/** What a client says, and what the vendor answers. */
const CONVERSATIONS: Readonly<Record<string, (talk: Talk) => Promise<unknown>>> = {
  async 'rounds of hidden tools, mixed turns, and a later question'({
    url,
    client,
    answers,
    ...how
  }) {
    answers(
      call(search('one')),
      call(weather('Oslo'), search('two'), weather('Rome')),
      call(search('three')),
      say('All is known.'),
      say('You are welcome.'),
    );
    const chat = SEARCH_CHATS[client](url, how);
    const first = await chat.say('Everything?');
    const second = await chat.answer('rain');
    const third = await chat.say('Thanks.');
    return [first, second, third].map(({ text, calls, finish }) => [text, calls.length, finish]);
  },

  async 'call ids that begin anew in each round'({ url, client, answers, ...how }) {
    answers(
      call(search('one', 'call_0')),
      call(search('two', 'call_0')),
      say('Both.'),
      call(search('three', 'call_0')),
      call(weather('Oslo', 'call_0')),
      say('Bye.'),
    );
    const chat = SEARCH_CHATS[client](url, how);
    const first = await chat.say('One, two?');
    const second = await chat.say('Three, and the weather?');
    const third = await chat.answer('rain');
    return [first, second, third].map(({ text, finish }) => [text, finish]);
  },

  async 'reasoning that the client does not send back'({ url, client, answers, ...how }) {
    answers(
      thinking('I look.', call({ name: 'get_weather', arguments: { city: 'Oslo' }, id: 'call_0' })),
      thinking('Once more.', call({ name: 'get_weather', arguments: { city: 'Rome' } })),
      thinking('I know.', say('Rain in both of them.')),
      say('You are welcome.'),
    );
    const chat = CLIENT_CHATS[client](url, { ...how, tools: true, think: true });
    const replies = [
      await chat.say('Weather?'),
      await chat.answer(() => 'rain'),
      await chat.answer(() => 'more rain'),
      await chat.say('Thanks.'),
    ];
    return replies.map(({ text, finish }) => [text, finish]);
  },

  async 'reasoning around hidden tools'({ url, client, answers, ...how }) {
    answers(
      thinking('I search.', call(search('tides', 'call_0'))),
      thinking('Now the weather.', call(weather('Oslo', 'call_0'))),
      thinking('I know.', say('High at noon.')),
      say('You are welcome.'),
    );
    const chat = CLIENT_CHATS[client](url, { ...how, tools: true, think: true });
    const replies = [
      await chat.say('Tides?'),
      await chat.answer(() => 'rain'),
      await chat.say('Thanks.'),
    ];
    return replies.map(({ text, finish }) => [text, finish]);
  },

  async 'long tool results'({ url, client, answers, ...how }) {
    answers(
      call({ name: 'get_weather', arguments: { city: 'Oslo' } }),
      call({ name: 'get_weather', arguments: { city: 'Rome' } }),
      say('Rain.'),
      say('You are welcome.'),
    );
    const chat = CLIENT_CHATS[client](url, { ...how, tools: true });
    await chat.say('Weather?');
    await chat.answer(() => `rain ${'and rain '.repeat(40)}`);
    await chat.answer(() => `sun ${'and sun '.repeat(40)}`);
    return (await chat.say('Thanks.')).text;
  },
};

/** Ids that a gateway or a fake vendor made up are numbered as they come. */
function withoutIds(text: string): string {
  const known = new Map<string, string>();
  return text.replace(
    /\b((?:call|toolu|fc|msg|rs|resp|ws|srvtoolu)_)([A-Za-z0-9]{8,}(?:_\d+)?)\b/g,
    (id, kind: string) => {
      const name = known.get(id) ?? `${kind}#${known.size}`;
      known.set(id, name);
      return name;
    },
  );
}

describe.skipIf(!HAS_CACHE)('any replica takes any turn', () => {
  let cache: Server;
  let upstream: FakeUpstream;
  let eyes: FakeUpstream;
  let toolServers: ToolServers;
  let single: Gateway;
  let replicas: Replicas;

  beforeAll(async () => {
    [cache, upstream, eyes, toolServers] = await Promise.all([
      startCache(),
      startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] }),
      startFakeUpstream({ keys: ['sk-eyes'], models: ['seer'] }),
      startToolServers(),
    ]);
    const config = threeProviders(upstream, {
      server_tools: { ...toolsOf(toolServers), vision: { target: 'eyes/seer' } },
      limits: { tool_text: 100 },
      profiles: { weak: { images: false, shortToolResults: true } },
    }) as { providers: Record<string, Record<string, unknown>> };
    for (const provider of Object.values(config.providers)) provider.profile = 'weak';
    config.providers.eyes = {
      protocol: 'anthropic-messages',
      base_url: eyes.baseUrl('anthropic-messages'),
      keys: ['sk-eyes'],
      models: ['seer'],
    };
    const engines = { cache: `redis://127.0.0.1:${cache.port}`, seal: [SECRET] };
    single = await startGateway(config, { patience: 120_000 });
    replicas = await startReplicas({ ...config, engines });
  }, 180_000);
  afterEach(() => {
    upstream.clear();
    eyes.clear();
    toolServers.clear();
  });
  afterAll(() => stopAll(replicas, single, upstream, eyes, toolServers, cache));

  const bodies = () =>
    upstream.modelRequests.map(({ bytes }) => withoutIds(new TextDecoder().decode(bytes)));
  const answers = (...all: Answer[]) => upstream.enqueue(...all);

  /** Answers whose end went out before the cache had their state. */
  const lateAnswers = async () => {
    const texts = await Promise.all(
      replicas.gateways.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()),
    );
    const counts = texts.map((text) => /^hopgate_shared_state_late_total (\d+)/m.exec(text)?.[1]);
    return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
  };
  /** So long a replica waits for what it reads from the cache. */
  const READ_MS = 100;
  /**
   * The same once more where a busy machine let the cache answer late, and a turn missed what the last one left.
   * @param isWhole nothing was missed
   */
  async function inTime<T>(talk: () => Promise<T>, isWhole: () => boolean, times = 5): Promise<T> {
    upstream.clear();
    const before = await lateAnswers();
    const began = performance.now();
    const said = await talk();
    const waited = performance.now() - began >= READ_MS || (await lateAnswers()) > before;
    return times === 1 || !waited || isWhole() ? said : inTime(talk, isWhole, times - 1);
  }

  // Each client speaks to each vendor; every second pair streams, and in the next conversation the other ones.
  for (const [i, [name, talk]] of Object.entries(CONVERSATIONS).entries()) {
    for (const [j, client] of PROTOCOLS.entries()) {
      for (const [k, vendor] of PROTOCOLS.entries()) {
        const stream = (i + j + k) % 2 === 0;
        test(`${name}: ${client} → ${vendor}, ${stream ? 'streamed' : 'whole'}`, async () => {
          const how = { client, model: VIA[vendor], stream, answers };
          const alone = await talk({ ...how, url: single.url });
          expect(upstream.refusals).toEqual([]);
          const expected = bodies();
          const together = await inTime(
            () => talk({ ...how, url: replicas.url }),
            () => Bun.deepEquals(bodies(), expected),
          );
          expect(upstream.refusals).toEqual([]);
          expect(together).toEqual(alone);
          expect(bodies()).toEqual(expected);
          expect(expected.length).toBeGreaterThan(3);
        });
      }
    }
  }

  test('an image is described once, and every replica sends the same text', async () => {
    eyes.answerWith(() => say('A single blue dot.'));
    const content = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
    ];
    const ask = async () => {
      upstream.enqueue(say('A dot.'));
      const answer = await fetch(`${replicas.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: VIA['openai-chat'], messages: [{ role: 'user', content }] }),
      });
      expect(await answer.text()).toContain('A dot.');
    };
    // At the same time on all of them, and later.
    await Promise.all([ask(), ask(), ask()]);
    await ask();
    await ask();
    await ask();
    const texts = upstream.modelRequests.map(
      ({ body }) => sentHistory('openai-chat', body)[0]!.text,
    );
    expect(texts[0]).toContain('A single blue dot.');
    expect(new Set(texts).size).toBe(1);
    expect(eyes.modelRequests.length).toBeLessThanOrEqual(3);
    expect(eyes.modelRequests.length).toBeGreaterThan(0);
  });

  test('nothing of the conversations can be read in the cache', () => {
    const keys = cacheCommand(cache.port, 'keys', '*').split('\n');
    expect(keys.filter((key) => key.includes(':hops:')).length).toBeGreaterThan(10);
    for (const key of keys.filter((one) => /:(hops|answers|images|short):/.test(one))) {
      const stored = cacheCommand(cache.port, 'get', key);
      expect(stored).not.toMatch(/get_weather|web_search|Oslo|blue dot|call_/);
    }
  });

  test('the hidden rounds of one key are never in the requests of another, on any replica', async () => {
    const config = threeProviders(upstream, {
      server_tools: toolsOf(toolServers),
      auth: { keys: ['one', 'two'].map((name) => ({ name, key: `key-of-${name}-client` })) },
      engines: { cache: `redis://127.0.0.1:${cache.port}` },
    });
    const own = await startReplicas(config, 2);
    try {
      const ask = async (name: string, messages: readonly object[]) => {
        const answer = await fetch(`${own.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer key-of-${name}-client` },
          body: JSON.stringify({ model: VIA['openai-chat'], messages }),
        });
        expect(answer.status).toBe(200);
        await answer.text();
      };
      upstream.enqueue(call(search('private')), say('Found it.'));
      const said = [{ role: 'user', content: 'Look it up.' }];
      await ask('one', said);
      const history = [
        ...said,
        { role: 'assistant', content: 'Found it.' },
        { role: 'user', content: 'Go on.' },
      ];
      const lastRoles = () => {
        const sent = sentHistory('openai-chat', upstream.modelRequests.at(-1)!.body);
        return sent.map(({ role }): string => role);
      };
      for (let i = 0; i < 2; i++) {
        upstream.enqueue(say('Yes.'));
        await ask('two', history);
        expect(lastRoles()).toEqual(['user', 'assistant', 'user']);
        upstream.enqueue(say('Yes.'));
        await ask('one', history);
        expect(lastRoles()).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
        // The other way round on the other replicas.
        await fetch(`${own.url}/health`).then((one) => one.text());
      }
    } finally {
      await own.stop();
    }
  });

  test('a frozen, flushed or restarted cache in the middle of a turn: the turn goes on, and the next ones are whole', async () => {
    const turn = async (between: () => Promise<void> | void): Promise<string[]> => {
      upstream.enqueue(call(search('fjords'), weather('Oslo')), say('Rain on the fjords.'));
      const chat = SEARCH_CHATS['openai-chat'](replicas.url, {
        model: VIA['openai-chat'],
        stream: true,
      });
      const first = await chat.say('Fjords?');
      expect(first.finish).toBe('calls');
      await between();
      const end = await chat.answer('rain');
      expect(upstream.refusals).toEqual([]);
      expect(end.text).toBe('Rain on the fjords.');
      const sent = sentHistory('openai-chat', upstream.modelRequests.at(-1)!.body);
      return sent.map(({ role }): string => role);
    };
    const whole: string[] = ['user', 'assistant', 'tool', 'tool'];
    expect(await turn(() => {})).toEqual(whole);
    // What is lost is lost as after its expiry; the replica that has it at hand still knows it.
    await turn(() => void cacheCommand(cache.port, 'flushall'));
    await turn(() => cache.freeze());
    // It ends without its state being stored, and says so.
    const isLate = (line: string) => /^hopgate_shared_state_late_total [1-9]/.test(line);
    await turn(() => {});
    const late = await Promise.all(
      replicas.gateways.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()),
    );
    expect(late.some((text) => text.split('\n').some(isLate))).toBe(true);
    cache.thaw();
    await turn(() => cache.restart());
    const isUp = async ({ url }: Gateway) => {
      const { engines } = (await (await fetch(`${url}/health/engines`)).json()) as {
        engines: { cache: { state: string } };
      };
      return engines.cache.state === 'up';
    };
    await until(async () => (await Promise.all(replicas.gateways.map(isUp))).every(Boolean));
    expect(await turn(() => {})).toEqual(whole);
  });

  test('requests that hold nothing of the kind ask the cache nothing; others ask once', async () => {
    const [gateway] = replicas.gateways;
    const reads = () => {
      const [, calls] =
        /^cmdstat_mget:calls=(\d+)/m.exec(cacheCommand(cache.port, 'info', 'commandstats')) ?? [];
      return Number(calls ?? 0);
    };
    const ask = async (messages: readonly object[]) => {
      upstream.enqueue(say('Fine.'));
      const answer = await fetch(`${gateway!.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: VIA['openai-chat'], messages }),
      });
      await answer.text();
    };
    await ask([{ role: 'user', content: 'hi' }]);
    const before = reads();
    for (let i = 0; i < 5; i++) await ask([{ role: 'user', content: `hi ${i}` }]);
    expect(reads() - before).toBe(0);
    await ask([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Hello from elsewhere.' },
      { role: 'user', content: 'hm' },
    ]);
    expect(reads() - before).toBe(1);
  });
});
