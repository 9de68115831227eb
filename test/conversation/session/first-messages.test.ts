/** What the turns of a session have in common, in the bodies of all protocols. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { firstMessages } from '../../../src/conversation/session/first-messages.ts';
import type { ProtocolName } from '../../../src/conversation/types.ts';
import { expectLinear } from '../../support/growth.ts';

const of = (protocol: ProtocolName, body: unknown) =>
  firstMessages(protocol, new TextEncoder().encode(JSON.stringify(body)));
const chat = (...messages: unknown[]) => of('openai-chat', { model: 'm', messages });

describe('the same for every turn', () => {
  const turns = fc.array(
    fc.record({ role: fc.constantFrom('user', 'assistant', 'tool'), content: fc.string() }),
  );
  const first = fc.record({ role: fc.constant('user'), content: fc.string({ minLength: 1 }) });

  test('whatever is added behind the first message of the user', () => {
    fc.assert(
      fc.property(fc.string(), first, turns, (system, message, more) => {
        const start = [{ role: 'system', content: system }, message];
        expect(chat(...start, ...more)).toBe(chat(...start));
        expect(chat(...start)).not.toBe('');
        const input = { model: 'm', tools: [{ name: 'x' }], input: [...start, ...more] };
        expect(of('openai-responses', input)).toBe(chat(...start));
      }),
    );
  });

  test('with the marks of a cache elsewhere, and in either order of a message’s members', () => {
    const part = { type: 'text', text: 'Hello.' };
    const marked = { ...part, cache_control: { type: 'ephemeral' } };
    const plain = of('anthropic-messages', { messages: [{ role: 'user', content: [part] }] });
    expect(of('anthropic-messages', { messages: [{ content: [marked], role: 'user' }] })).toBe(
      plain,
    );
    expect(plain).toContain('Hello.');
  });

  test('another first message, or another instruction before it, is another session', () => {
    const all = [
      chat({ role: 'user', content: 'one' }),
      chat({ role: 'user', content: 'two' }),
      chat({ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'one' }),
      of('openai-responses', { input: 'one' }),
      of('openai-responses', { input: 'two' }),
    ];
    expect(new Set(all).size).toBe(all.length);
  });
});

describe('bodies of any kind', () => {
  test.each([
    [{}],
    [{ messages: [] }],
    [{ messages: null }],
    [{ messages: {} }],
    [{ messages: 7 }],
    [{ messages: ['x'] }],
    [{ messages: [null, { role: 'user', content: 'x' }] }],
    [[]],
    ['x'],
  ])('%j has none', (body) => {
    expect(of('openai-chat', body)).toBe('');
  });

  test('bytes that are no JSON', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.string(), (bytes, text) => {
        for (const protocol of ['openai-chat', 'openai-responses', 'anthropic-messages'] as const) {
          firstMessages(protocol, bytes);
          firstMessages(protocol, Buffer.from(`{"messages":[${text}`));
          firstMessages(protocol, Buffer.from(`{"messages":[{"role":"user","content":${text}}]}`));
        }
      }),
    );
  });

  test('what is long is cut, and read in linear time', async () => {
    expect(chat({ role: 'user', content: 'x'.repeat(1_000_000) }).length).toBeLessThan(5000);
    await expectLinear({
      name: 'messages',
      input: (size) =>
        Buffer.from(
          JSON.stringify({ messages: Array(size / 32).fill({ role: 'assistant', content: '' }) }),
        ),
      run: (bytes) => firstMessages('openai-chat', bytes),
    });
  });
});
