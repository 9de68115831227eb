/** The facts of a request for the rules, and that only the needed ones are computed. */

import { describe, expect, test } from 'bun:test';
import type {
  Block,
  Conversation,
  Role,
  Settings,
  Tool,
  Turn,
} from '../../src/conversation/types.ts';
import { requestFacts, route } from '../../src/routing/index.ts';
import { PROVIDERS, table } from './support.ts';

const text = (message: string): Block => ({ type: 'text', text: message });
const image = (data = 'AAAA'): Block => ({
  type: 'media',
  media: 'image',
  source: { type: 'base64', mediaType: 'image/png', data },
});
const pdf: Block = { ...image(), media: 'document' } as Block;
const call: Block = {
  type: 'tool-call',
  id: 'c',
  name: 'Read',
  kind: 'function',
  input: '{}',
  by: 'client',
};
const result = (...content: Block[]): Block => ({
  type: 'tool-result',
  callId: 'c',
  kind: 'function',
  content,
  isError: false,
  by: 'client',
});
const turn = (role: Role, ...blocks: Block[]): Turn => ({ role, blocks });
const tool = (name: string): Tool => ({ type: 'function', name });
const search: Tool = { type: 'hosted', name: 'web_search', kind: 'web_search', options: {} };

function facts(parts: Partial<Omit<Conversation, 'settings'>> & { settings?: Partial<Settings> }) {
  let decoded = 0;
  const conversation: Conversation = {
    model: 'm',
    system: [],
    turns: [],
    tools: [],
    ...parts,
    settings: { stream: true, ...parts.settings },
  };
  const request = (bytes = 400) =>
    requestFacts({
      model: 'm',
      protocol: 'openai-chat',
      stream: true,
      bytes,
      headers: new Headers(),
      affinity: 'a',
      time: 0,
      request: {
        get conversation() {
          decoded++;
          return conversation;
        },
      },
    });
  return { request, decoded: () => decoded };
}

const of = (parts: Parameters<typeof facts>[0]) => facts(parts).request();

describe('images', () => {
  const cases: [string, Turn[], number][] = [
    ['in the last user turn', [turn('user', text('look'), image(), image())], 2],
    [
      'in the result of a tool',
      [turn('user', text('go')), turn('assistant', call), turn('user', result(image()))],
      1,
    ],
    [
      'in a document of Messages',
      [
        turn('user', text('look'), {
          type: 'opaque',
          name: 'document',
          parts: [text('Above.'), image()],
          wire: { protocol: 'anthropic-messages', value: {} },
        }),
      ],
      1,
    ],
    [
      'asked about before a tool was called, in the middle of its loop',
      [
        turn('user', text('look'), image()),
        turn('assistant', call),
        turn('user', result(text('ok'))),
      ],
      1,
    ],
    [
      'of an earlier question do not count',
      [turn('user', image()), turn('assistant', text('a cat')), turn('user', text('thanks'))],
      0,
    ],
    [
      'beside a system turn',
      [turn('user', image()), turn('system', text('note')), turn('user', text('what?'))],
      1,
    ],
    ['before a prefilled answer', [turn('user', image()), turn('assistant', text('It'))], 1],
    ['nowhere', [], 0],
  ];
  test.each(cases)('%s', (_, turns, wanted) => {
    expect(of({ turns }).images).toBe(wanted);
  });
});

describe('tokens', () => {
  test('text tokens are four bytes each', () => {
    expect(facts({}).request(4001).tokens).toBe(1001);
  });

  test('images do not count, so that a screenshot is not a long context', () => {
    const data = 'A'.repeat(400_000);
    const { request } = facts({ turns: [turn('user', image(data), text('x'))] });
    expect(request(400_400).tokens).toBe(100);
  });

  test('tokens of a small body need no decoding', () => {
    const { request, decoded } = facts({});
    expect(request(60_000).tokens).toBe(15_000);
    expect(decoded()).toBe(0);
  });
});

describe('tools, documents and text', () => {
  const request = of({
    tools: [tool('Read'), search],
    turns: [
      turn('user', pdf),
      turn('assistant', text('ok')),
      turn('user', text('and'), text('now')),
    ],
  });
  test('tools, documents and text are counted separately', () => {
    expect(request.toolNames).toEqual(['Read']);
    expect(request.hostedTools).toEqual(['web_search']);
    expect(request.documents).toBe(1);
    expect(request.lastUserText).toBe('and\nnow');
  });
});

describe('thinking', () => {
  const cases: [Settings['reasoning'], boolean][] = [
    [undefined, false],
    [{}, false],
    [{ enabled: true, budget: 31_999 }, true],
    [{ enabled: false, effort: 'high' }, false],
    [{ adaptive: true }, true],
    [{ effort: 'medium' }, true],
    [{ effort: 'none' }, false],
    [{ budget: 0 }, false],
  ];
  test.each(cases)('%j: %p', (reasoning, wanted) => {
    const request = of({ settings: { reasoning } });
    expect(request.thinking).toBe(wanted);
    expect(request.effort).toBe(reasoning?.effort);
  });
});

describe('a side job', () => {
  const schema = (...keys: string[]): Partial<Settings> => ({
    format: {
      type: 'schema',
      schema: { type: 'object', properties: Object.fromEntries(keys.map((key) => [key, {}])) },
    },
  });
  const asks: Turn[] = [turn('system', text('You are a title generator. Answer with a title.'))];
  test.each([
    ['a schema that wants a title and nothing else', { settings: schema('title') }, true],
    ['a schema that wants a report', { settings: schema('title', 'body', 'tags') }, false],
    ['instructions for a title, in a turn', { turns: asks }, true],
    [
      'instructions for a title, apart',
      { system: [text('You are naming a coding session so that')] },
      true,
    ],
    ['the same with tools: an agent at work', { turns: asks, tools: [tool('Edit')] }, false],
    [
      'a user who asks for one',
      { turns: [turn('user', text('Generate a short title for my book'))] },
      false,
    ],
    ['an ordinary chat', { turns: [turn('user', text('hello'))] }, false],
  ])('%s', (_, parts, wanted) => {
    expect(of(parts).background).toBe(wanted);
  });
});

describe('laziness', () => {
  test('a table with conditions on names alone never decodes the body', () => {
    const { request, decoded } = facts({ tools: [tool('Edit')] });
    const of = table(`${PROVIDERS}routes: [{ when: { model: "m*", stream: true }, to: [glm/a] }]`);
    expect(route(request(), of).ok).toBe(true);
    expect(decoded()).toBe(0);
  });

  test('a fact is computed once, however many rules read it', () => {
    let reads = 0;
    const conversation: Conversation = {
      model: 'm',
      system: [],
      tools: [],
      settings: { stream: true },
      get turns() {
        reads++;
        return [turn('user', image())];
      },
    };
    const request = requestFacts({
      model: 'm',
      protocol: 'openai-chat',
      stream: true,
      bytes: 10,
      headers: new Headers(),
      affinity: 'a',
      time: 0,
      request: { conversation },
    });
    const of = table(`${PROVIDERS}routes:
  - { when: { images: ">5" }, to: [glm/a] }
  - { when: { images: ">4" }, to: [glm/b] }
  - { when: { images: 1 }, to: [glm/c] }
`);
    expect(route(request, of).reason).toMatchObject({ index: 2 });
    expect(reads).toBe(1);
  });
});
