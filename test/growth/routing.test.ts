/** Routing time is linear in the client's input and in the operator's configuration, and never in their product. */

import { describe, expect, test } from 'bun:test';
import type { Config } from '../../src/config/config.ts';
import type { Block, Conversation, Turn } from '../../src/conversation/types.ts';
import { globTest } from '../../src/lib/text/glob.ts';
import {
  explain,
  modelsWith,
  plainRequest,
  type RouteRequest,
  requestFacts,
  route,
  routingTable,
} from '../../src/routing/index.ts';
import { good, PROVIDER } from '../config/support.ts';
import { expectCpuBelow } from '../support/cpu-time.ts';

const MEGABYTE = 1024 * 1024;

/** For a megabyte: quadratic work takes minutes. */
const expectQuick = (work: () => unknown) => expectCpuBelow(500, work);

const PATTERNS = [
  '*a*a*a*a*a*a*a*a*b',
  '*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab*',
  '*a?a?a?a?b*',
  '*????????b',
  `${'*a'.repeat(200)}*b`,
  `*${'?a'.repeat(50)}b*`,
  '*/*/*/*',
  'a*b*a',
];
const TEXTS: Readonly<Record<string, (size: number) => string>> = {
  'one letter': (size) => 'a'.repeat(size),
  'two by turns': (size) => 'ab'.repeat(size / 2),
  slashes: (size) => '/'.repeat(size),
  'capitals of two': (size) => 'İ'.repeat(size),
};

describe('globs', () => {
  for (const pattern of PATTERNS) {
    for (const [name, input] of Object.entries(TEXTS)) {
      test(`${pattern.slice(0, 40)} on ${name}`, async () => {
        const fits = globTest(pattern);
        await expectQuick(() => fits(input(MEGABYTE)));
      });
    }
  }

  test('the matcher agrees with trying every split, on many small texts', () => {
    const slow = (pattern: string): RegExp =>
      new RegExp(
        `^${[...pattern].map((c) => (c === '*' ? '.*' : c === '?' ? '.' : c === 'a' ? 'a' : 'b')).join('')}$`,
        's',
      );
    const letters = ['a', 'b', '*', '?'];
    let seed = 1;
    const next = (n: number) => {
      seed = (seed * 48271) % 2147483647;
      return seed % n;
    };
    for (let i = 0; i < 20_000; i++) {
      const pattern = Array.from({ length: next(8) }, () => letters[next(4)]!).join('');
      const text = Array.from({ length: next(10) }, () => letters[next(2)]!).join('');
      expect([pattern, text, globTest(pattern)(text)]).toEqual([
        pattern,
        text,
        slow(pattern).test(text),
      ]);
    }
  });
});

const many = (count: number, line: (n: number) => string): Config =>
  good(
    `${PROVIDER}routes:\n${Array.from({ length: count }, (_, n) => `  - ${line(n)}\n`).join('')}`,
  );
const asking = (model: string, more: Partial<RouteRequest> = {}): RouteRequest => ({
  ...plainRequest(model, 'openai-chat', 0),
  ...more,
});

describe('ten thousand routes', () => {
  const globs = routingTable(many(10_000, (n) => `{ when: { model: "*m${n}*x" }, to: [p/x] }`));

  test('a name of a megabyte is refused before any route is compared', async () => {
    const model = 'm'.repeat(1024 * 1024);
    const refused = { ok: false, error: { kind: 'not_found' } };
    await expectCpuBelow(50, () => expect(route(asking(model), globs)).toMatchObject(refused));
  });

  test('an unknown name costs milliseconds, each time', async () => {
    route(asking('warm'), globs);
    await expectCpuBelow(500, () => {
      for (let i = 0; i < 10; i++) expect(route(asking(`unknown-${i}`), globs).ok).toBe(false);
    });
  });

  test('the category of a request with very many tools is computed once', async () => {
    const config = many(
      2000,
      (n) => `{ when: { category: vision, model: "m${n % 2}" }, to: [p/x] }`,
    );
    const table = routingTable(config);
    const toolNames = Array.from({ length: 20_000 }, (_, n) => `tool_${n}`);
    route(asking('m0'), table);
    await expectCpuBelow(100, () => route(asking('m0', { toolNames }), table));
  });

  test('a list of ten thousand vendor names is applied in bounded time', async () => {
    const names = Array.from({ length: 10_000 }, (_, n) => `vendor-${n}`);
    const config = many(10_000, (n) => `{ when: { model: "r${n}-*" }, to: ["p/*"] }`);
    await expectCpuBelow(2000, () => modelsWith(config, new Map([['p', names]])));
  });
});

describe('facts of a request', () => {
  const table = routingTable(
    many(
      8,
      (n) =>
        `{ when: { text: ["*urgent*${n}*", "*a*b*c*"], tool_names: ["x*", "*y?z*"], images: ">${n}", documents: true, background: true, category: [coding, tools], tokens: ">${n}k" }, to: [p/x] }`,
    ),
  );
  const facts = (turns: readonly Turn[], tools: Conversation['tools'] = [], bytes = 100_000) =>
    requestFacts({
      model: 'm',
      protocol: 'openai-chat',
      stream: false,
      bytes,
      headers: new Headers(),
      affinity: 'a',
      request: {
        conversation: { system: [], turns, tools, settings: {} } as unknown as Conversation,
      },
    });
  const text = (message: string): Block => ({ type: 'text', text: message }) as Block;
  const user = (...blocks: Block[]): Turn => ({ role: 'user', blocks }) as Turn;
  const result = { type: 'tool-result', callId: 'c', content: [text('r')] } as unknown as Block;
  const inputs: Readonly<Record<string, (size: number) => RouteRequest>> = {
    'one long text': (size) => facts([user(text('a'.repeat(size)))]),
    'a long text of parts of a pattern': (size) => facts([user(text('aburgent'.repeat(size / 8)))]),
    'very many turns': (size) =>
      facts(Array.from({ length: size / 64 }, () => user(text('urgent')))),
    'very many blocks': (size) =>
      facts([user(...Array.from({ length: size / 64 }, () => text('b')))]),
    'very many results': (size) =>
      facts([user(text('q')), ...Array.from({ length: size / 64 }, () => user(result))]),
    'very many tools': (size) =>
      facts(
        [user(text('q'))],
        Array.from(
          { length: size / 64 },
          (_, n) =>
            ({ type: 'function', name: `tool_${n}` }) as unknown as Conversation['tools'][0],
        ),
      ),
    'very many instructions': (size) =>
      facts(
        Array.from(
          { length: size / 64 },
          () => ({ role: 'system', blocks: [text('create a, a, a, a, a, a,')] }) as Turn,
        ),
      ),
  };
  for (const [name, input] of Object.entries(inputs)) {
    test(name, async () => {
      const request = input(MEGABYTE);
      await expectQuick(() => explain(request, table));
    });
  }
});
