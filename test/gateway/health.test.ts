/** Targets that rest, with vendors that answer by script over the real network: each sign, and where requests go then. */

import { afterEach, describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../src/conversation/types.ts';
import type { CooldownReason } from '../../src/upstream/health/cooldown.ts';
import {
  beginning,
  head,
  type RawUpstream,
  rawUpstream,
  rawWorld,
  saying,
  whole,
} from './raw-upstream.ts';

const open: RawUpstream[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

type Answer = string | 'silence' | 'reset';

/** Answers by script; behind its end, with the last answer again and again. */
function vendor(...script: Answer[]): RawUpstream {
  const upstream = rawUpstream(async (wire, number) => {
    const answer = script[Math.min(number, script.length) - 1]!;
    if (answer === 'silence') return;
    if (answer !== 'reset') await wire.write(answer);
    wire.end();
  });
  open.push(upstream);
  return upstream;
}

const refusal = (status: number, words: string, more = '') =>
  whole(status, JSON.stringify({ error: { message: words, type: 'error' } }), more);
const FINE = saying('openai-chat', false, 'Fine.');

interface Setting {
  readonly keys?: number;
  readonly more?: string;
  readonly to?: string;
}

/** Provider a with its keys, then b; requests without a session all have the same first message. */
function world(a: RawUpstream, b?: RawUpstream, { keys = 1, more = '', to }: Setting = {}) {
  const list = Array.from({ length: keys }, (_, i) => `"key-of-a-${i}"`).join(', ');
  const second =
    b === undefined
      ? ''
      : `  b: { protocol: openai-chat, base_url: "${b.url}", keys: [key-of-b] }\n`;
  return rawWorld(
    `providers:
  a: { protocol: openai-chat, base_url: "${a.url}", keys: [${list}]${more} }
${second}routes: [{ to: ${to ?? (b === undefined ? '[a/m]' : '[a/m, b/m]')} }]
retry: { attempts: 1, base_delay: 0 }`,
  );
}

const restsOf = (of: ReturnType<typeof world>) =>
  of.health().rests.map(({ since, until, provider, model = '*', key, reason, status }) => ({
    what: `${provider}/${model}${key === undefined ? '' : ' key'}`,
    reason,
    status,
    seconds: Math.round((Date.parse(until) - Date.parse(since)) / 1000),
  }));

describe('signs of a vendor', () => {
  const place = (reason: CooldownReason, status: number, seconds: number) => [
    { what: 'a/m key', reason, status, seconds },
  ];
  const cases: readonly (readonly [string, Answer, ReturnType<typeof restsOf>])[] = [
    ['429', refusal(429, 'Slow down.'), place('rate_limit', 429, 2)],
    [
      '429 with Retry-After',
      refusal(429, 'Slow down.', 'retry-after: 17\r\n'),
      place('rate_limit', 429, 17),
    ],
    [
      '429 with an hour',
      refusal(429, 'Slow down.', 'retry-after: 3600\r\n'),
      place('rate_limit', 429, 300),
    ],
    [
      '429 with a reset',
      refusal(
        429,
        'Slow down.',
        'x-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 1m2s\r\n',
      ),
      place('rate_limit', 429, 62),
    ],
    [
      '429 about the quota',
      refusal(429, 'You exceeded your current quota.'),
      place('quota', 429, 60),
    ],
    [
      '401',
      refusal(401, 'Bad key.'),
      [{ what: 'a/* key', reason: 'key_refused', status: 401, seconds: 60 }],
    ],
    [
      '402',
      refusal(402, 'Pay first.'),
      [{ what: 'a/* key', reason: 'quota', status: 402, seconds: 60 }],
    ],
    ['403', refusal(403, 'Not for you.'), place('key_refused', 403, 60)],
    [
      '529',
      refusal(529, 'Too much.'),
      [{ what: 'a/m', reason: 'overloaded', status: 529, seconds: 2 }],
    ],
    [
      '503 of an overload',
      refusal(503, 'The engine is currently overloaded.'),
      [{ what: 'a/m', reason: 'overloaded', status: 503, seconds: 2 }],
    ],
    ['503 of a fault', refusal(503, 'Upstream connect error.'), []],
    ['500', refusal(500, 'Oops.'), []],
    ['no answer', 'reset', []],
    ['400', refusal(400, 'Bad field.'), []],
    ['404', refusal(404, 'No such thing.'), []],
    ['409', refusal(409, 'Conflict.'), []],
    ['422', refusal(422, 'Bad value.'), []],
    ['a redirect', 'HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n', []],
  ];
  for (const [what, answer, rests] of cases) {
    test(`${what}: rests ${rests.map((one) => one.what).join() || 'nothing'}`, async () => {
      const of = world(vendor(answer));
      await of.ask('openai-chat', false);
      expect(restsOf(of)).toEqual(rests);
    });
  }

  test('a model that the vendor does not have: nothing rests, and the target does not count as serving', async () => {
    const answers = [
      refusal(404, 'The model `m` does not exist.'),
      refusal(400, '模型不存在，请检查模型代码。'),
      refusal(400, 'Bad field.'),
      refusal(404, 'No such file.'),
    ];
    const states: string[] = [];
    for (const answer of answers) {
      const of = world(vendor(answer));
      await of.ask('openai-chat', false);
      expect(restsOf(of)).toEqual([]);
      states.push(...of.health().targets.map(({ target, state }) => `${target} ${state}`));
    }
    expect(states).toEqual(['a/m no_model', 'a/m no_model', 'a/m serving', 'a/m serving']);
    const of = world(vendor(answers[0]!, FINE));
    for (let i = 0; i < 2; i++) await of.ask('openai-chat', false);
    expect(of.health().targets).toEqual([{ target: 'a/m', state: 'serving' }]);
  });

  for (const client of ['anthropic-messages', 'openai-responses'] as const) {
    test(`${client}: an overload that is told inside a stream`, async () => {
      const { head: first, event } = IN_STREAM[client]!;
      const a = vendor(head('text/event-stream') + first + event);
      const of = rawWorld(
        `providers: { a: { protocol: ${client}, base_url: "${a.url}", keys: [k-1] } }\nroutes: [{ to: [a/m] }]\nretry: { attempts: 1, base_delay: 0 }`,
      );
      await of.ask(client, true);
      expect(restsOf(of).map(({ what, reason }) => [what, reason])).toEqual([
        ['a/m', 'overloaded'],
      ]);
    });
  }

  const failing: readonly (readonly [string, Answer, string])[] = [
    ['500', refusal(500, 'Oops.'), ''],
    ['503 of a fault', refusal(503, 'Upstream connect error.'), ''],
    ['no answer', 'reset', ''],
    ['a first byte that never comes', 'silence', ', timeouts: { first_byte: 0.2 }'],
    ['a stream that ends before its first content', `${head('text/event-stream')}: hello\n\n`, ''],
  ];
  for (const [what, answer, more] of failing) {
    test(`${what}: five in a row rest the place for 5 s`, async () => {
      const of = world(vendor(answer), undefined, { more });
      for (let i = 0; i < 4; i++) await of.ask('openai-chat', true);
      expect(restsOf(of)).toEqual([]);
      await of.ask('openai-chat', true);
      expect(restsOf(of)).toEqual([{ what: 'a/m key', reason: 'failures', status: 0, seconds: 5 }]);
    });
  }

  test('a vendor that sends nothing but comments is a failure, too', async () => {
    const a = rawUpstream(async (wire) => {
      await wire.write(head('text/event-stream'));
      while (await wire.write(': still here\n\n')) await Bun.sleep(20);
    });
    open.push(a);
    const of = world(a, undefined, { more: ', timeouts: { content: 0.1 }' });
    for (let i = 0; i < 5; i++) await of.ask('openai-chat', true);
    expect(restsOf(of).map(({ reason }) => reason)).toEqual(['failures']);
  });

  test('a server that cannot be reached', async () => {
    const gone = rawUpstream(() => {});
    gone.stop();
    const of = world(gone);
    for (let i = 0; i < 5; i++) await of.ask('openai-chat', false);
    expect(restsOf(of).map(({ reason }) => reason)).toEqual(['failures']);
  });

  test('clients that leave say nothing of the vendor', async () => {
    const of = world(vendor('silence'));
    for (let i = 0; i < 12; i++) {
      await of.ask('openai-chat', true, {}, {}, AbortSignal.timeout(10));
    }
    expect(restsOf(of)).toEqual([]);
    expect(of.health().targets).toEqual([{ target: 'a/m', state: 'serving' }]);
  });
});

/** The beginning of a stream, and the error that the vendor sends in it. */
const IN_STREAM: Partial<Record<ProtocolName, { head: string; event: string }>> = {
  'anthropic-messages': {
    head: '',
    event:
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
  },
  'openai-responses': {
    head: '',
    event:
      'event: error\ndata: {"type":"error","code":"server_is_overloaded","message":"Overloaded","sequence_number":0}\n\n',
  },
};

describe('where requests go', () => {
  test('past what rests to the next target, and back when it answers again', async () => {
    const a = vendor(refusal(429, 'Slow down.'), FINE);
    const b = vendor(saying('openai-chat', false, 'From b.'));
    const of = world(a, b);
    expect((await of.ask('openai-chat', false)).text).toContain('From b.');
    expect([a.asked, b.asked]).toEqual([1, 1]);
    await of.ask('openai-chat', false);
    expect([a.asked, b.asked]).toEqual([1, 2]);
    expect(of.health().targets[0]).toEqual({ target: 'a/m', state: 'resting' });
    of.pass(2000);
    expect(of.health().targets[0]).toEqual({ target: 'a/m', state: 'half_open' });
    expect((await of.ask('openai-chat', false)).text).toContain('Fine.');
    expect(of.health().targets[0]).toEqual({ target: 'a/m', state: 'serving' });
    of.pass(10_000);
    expect((await of.ask('openai-chat', false)).text).toContain('Fine.');
    expect([a.asked, b.asked]).toEqual([3, 2]);
  });

  test('the trial has the next target behind it, and is one at a time', async () => {
    let hold: (() => void) | undefined;
    const a = rawUpstream(async (wire, number) => {
      if (number > 1) await new Promise<void>((resolve) => (hold = resolve));
      await wire.write(refusal(429, 'Slow down.'));
      wire.end();
    });
    open.push(a);
    const b = vendor(saying('openai-chat', false, 'From b.'));
    const of = world(a, b);
    await of.ask('openai-chat', false);
    of.pass(2000);
    const trial = of.ask('openai-chat', false);
    while (hold === undefined) await Bun.sleep(5);
    const others = await Promise.all([1, 2, 3].map(() => of.ask('openai-chat', false)));
    for (const { text } of others) expect(text).toContain('From b.');
    expect(a.asked).toBe(2);
    hold();
    const tried = await trial;
    expect([tried.status, tried.text.includes('From b.')]).toEqual([200, true]);
  });

  test('after a 429 to another key, after an overload to another target', async () => {
    const limited = vendor(refusal(429, 'Slow down.'), FINE);
    const spare = vendor(saying('openai-chat', false, 'From b.'));
    expect((await world(limited, spare, { keys: 2 }).ask('openai-chat', false)).text).toContain(
      'Fine.',
    );
    const full = vendor(refusal(529, 'Overloaded.'), FINE);
    expect((await world(full, spare, { keys: 2 }).ask('openai-chat', false)).text).toContain(
      'From b.',
    );
    expect(full.asked).toBe(1);
  });

  test('when all rest, to the one that is due first', async () => {
    const a = vendor(refusal(429, 'Slow down.', 'retry-after: 60\r\n'));
    const b = vendor(refusal(429, 'Slow down.', 'retry-after: 30\r\n'), FINE);
    const of = world(a, b);
    expect((await of.ask('openai-chat', false)).status).toBe(429);
    expect((await of.ask('openai-chat', false)).text).toContain('Fine.');
    expect([a.asked, b.asked]).toEqual([1, 2]);
  });

  test('a single target is asked although it rests', async () => {
    const of = world(vendor(refusal(429, 'Slow down.', 'retry-after: 60\r\n'), FINE));
    expect((await of.ask('openai-chat', false)).status).toBe(429);
    expect((await of.ask('openai-chat', false)).status).toBe(200);
    expect(restsOf(of)).toEqual([]);
  });
});

describe('a prompt that is too long', () => {
  const overflow = whole(
    400,
    '{"error":{"message":"maximum context length is 1000 tokens","code":"context_length_exceeded","type":"invalid_request_error"}}',
  );

  test('goes to a target with more room before all others', async () => {
    const a = vendor(overflow);
    const b = rawUpstream(async (wire) => {
      await wire.write(FINE);
      wire.end();
    });
    open.push(b);
    const of = world(a, b, { to: '[a/small, a/also-small, b/unknown, b/large]' });
    const seen = await of.ask('openai-chat', false);
    expect([seen.status, a.asked, b.asked]).toEqual([200, 1, 1]);
    expect(seen.headers.get('x-hopgate-target')).toBe('b/large');
  });

  test('goes to one of the same size last, to a smaller one never', async () => {
    const a = vendor(overflow);
    const b = vendor(overflow);
    const of = world(a, b, { to: '[a/small, b/also-small, a/unknown, b/tiny]' });
    expect((await of.ask('openai-chat', false)).status).toBe(400);
    expect([a.asked, b.asked]).toEqual([2, 1]);
  });

  test('is told where no target has more', async () => {
    const a = vendor(overflow);
    const of = world(a, undefined, { to: '[a/large, a/small]' });
    const seen = await of.ask('openai-chat', false);
    expect([seen.status, a.asked]).toEqual([400, 1]);
    expect(seen.text).toContain('context_length_exceeded');
  });
});

describe('a session', () => {
  /** Says which key it was asked with. */
  function telling(): RawUpstream {
    const upstream = rawUpstream(() => {});
    upstream.stop();
    const server = Bun.serve({
      port: 0,
      fetch: (request) => {
        const key = request.headers.get('authorization')?.slice('Bearer '.length) ?? '';
        const text = saying('openai-chat', false, key);
        return new Response(text.slice(text.indexOf('\r\n\r\n') + 4), {
          headers: { 'content-type': 'application/json' },
        });
      },
    });
    const told = {
      ...upstream,
      url: `http://127.0.0.1:${server.port}`,
      stop: () => void server.stop(true),
    };
    open.push(told);
    return told;
  }
  const keyIn = (text: string) => /key-of-[ab](?:-\d)?/.exec(text)?.[0] ?? text;
  const turns = (count: number, first: string) =>
    Array.from({ length: 2 * count - 1 }, (_, i) =>
      i % 2 === 0
        ? { role: 'user', content: i === 0 ? first : `question ${i}` }
        : { role: 'assistant', content: `answer ${i}` },
    );

  test('keeps its key over all its turns, whichever client sign tells it', async () => {
    const of = world(telling(), undefined, { keys: 8 });
    const signs = [
      (id: number) => [{}, { 'x-claude-code-session-id': `session-${id}` }] as const,
      (id: number) => [{}, { session_id: `session-${id}` }] as const,
      (id: number) => [{ prompt_cache_key: `cache-${id}` }, {}] as const,
    ];
    for (const sign of signs) {
      const seen = new Set<string>();
      for (let id = 0; id < 24; id++) {
        const [body, headers] = sign(id);
        const keys = new Set<string>();
        for (let turn = 1; turn < 4; turn++) {
          const messages = turns(turn, 'the same for all');
          const { text } = await of.ask('openai-chat', false, { ...body, messages }, headers);
          keys.add(keyIn(text));
        }
        expect([...keys].length).toBe(1);
        for (const key of keys) seen.add(key);
      }
      // 24 sessions do not all have the same key of eight.
      expect(seen.size).toBeGreaterThan(3);
    }
  });

  test('is told by its first messages where the client says nothing, also when the prompt gets long', async () => {
    const of = world(telling(), undefined, { keys: 8 });
    const seen = new Set<string>();
    for (let id = 0; id < 24; id++) {
      const keys = new Set<string>();
      for (const turn of [1, 2, 5]) {
        const messages = turns(turn, `I am number ${id}.`);
        if (turn === 5) messages.push({ role: 'user', content: 'x'.repeat(100_000) });
        keys.add(keyIn((await of.ask('openai-chat', false, { messages })).text));
      }
      expect([...keys].length).toBe(1);
      for (const key of keys) seen.add(key);
    }
    expect(seen.size).toBeGreaterThan(3);
  });

  test('keeps its target among targets with weights', async () => {
    const of = world(telling(), telling(), {
      to: '[{ target: a/m, weight: 1 }, { target: b/m, weight: 1 }]',
    });
    const seen = new Set<string>();
    for (let id = 0; id < 24; id++) {
      const targets = new Set<string | null>();
      for (let turn = 0; turn < 3; turn++) {
        const headers = { 'x-session-id': `session-${id}` };
        const answer = await of.ask('openai-chat', false, {}, headers);
        targets.add(answer.headers.get('x-hopgate-target'));
      }
      expect([...targets].length).toBe(1);
      for (const target of targets) seen.add(target ?? '');
    }
    expect([...seen].sort()).toEqual(['a/m', 'b/m']);
  });
});

test('a stream that has begun is an answer, whatever becomes of it', async () => {
  const a = vendor(head('text/event-stream') + beginning('openai-chat', 'Half a'));
  const of = world(a);
  for (let i = 0; i < 8; i++) expect((await of.ask('openai-chat', true)).reset).toBe(true);
  expect(restsOf(of)).toEqual([]);
});
