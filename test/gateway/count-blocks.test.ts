/** A request with too many parts is refused before it is decoded: each step over its history would hold up the event loop. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { ClientRequest, countBlocks } from '../../src/gateway/client-request.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

test.each([
  [{}, 0],
  [[], 0],
  [{ messages: 'x', input: 'y', tools: null }, 0],
  [{ messages: [{ role: 'user', content: 'a' }, 7] }, 2],
  [{ messages: [{ role: 'user', content: [{}, {}] }], system: [{}], tools: [{}, {}] }, 6],
  [{ messages: [{ role: 'assistant', tool_calls: [{}, {}, {}] }] }, 4],
  [
    {
      input: [
        { type: 'reasoning', summary: [{}] },
        { type: 'message', content: [{}] },
      ],
    },
    4,
  ],
  [{ contents: [{ parts: [{}, {}] }, { parts: [{}] }] }, 5],
  [{ contents: [], tools: [{ functionDeclarations: [{}, {}, {}] }, { googleSearch: {} }] }, 5],
])('the parts of %j are %d', (body, count) => {
  expect(countBlocks(body as never)).toBe(count);
});

const BODIES: Readonly<Record<ProtocolName, (n: number) => object>> = {
  'openai-chat': (n) => ({
    messages: Array.from({ length: n }, () => ({ role: 'user', content: 'a' })),
  }),
  'anthropic-messages': (n) => ({
    max_tokens: 1,
    messages: [
      { role: 'user', content: Array.from({ length: n - 1 }, () => ({ type: 'text', text: 'a' })) },
    ],
  }),
  'openai-responses': (n) => ({
    input: Array.from({ length: n }, () => ({ role: 'user', content: 'a' })),
  }),
};

describe.each(Object.keys(BODIES) as ProtocolName[])('%s', (name) => {
  const request = (n: number, most: number) =>
    new ClientRequest(
      CODECS[name],
      new TextEncoder().encode(JSON.stringify({ model: 'm', ...BODIES[name](n) })),
      { mostBlocks: most },
    );

  test('one part over the limit is refused with the name of the limit', () => {
    expect(request(50, 50).conversation.turns.length).toBeGreaterThan(0);
    expect(() => request(51, 50).conversation).toThrow('limits.blocks');
    expect(() => request(20_000, 50).conversation).toThrow('limits.blocks');
  });

  test('a limit of 0 refuses nothing', () => {
    expect(request(3000, 0).conversation.model).toBe('m');
  });
});
