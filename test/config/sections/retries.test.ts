/** The sections `timeouts` and `retry`: what follows from what, and what a provider says for itself. */

import { expect, test } from 'bun:test';
import { environmentFrom } from '../../../src/config/environment.ts';
import { parseConfig } from '../../../src/config/load.ts';

function provider(own: string, top = '') {
  const text = `providers: { up: { protocol: openai-chat, base_url: "http://up.test"${own} } }\n${top}`;
  const loaded = parseConfig(text, 'test.yaml', environmentFrom({}, '/nowhere'));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config.providers.up!;
}

test.each([
  ['', '', 600],
  ['', 'timeouts: { first_byte: 30 }', 30],
  [', timeouts: { first_byte: 20 }', 'timeouts: { first_byte: 30 }', 20],
  ['', 'timeouts: { first_byte: 30, content: 90 }', 90],
  [', timeouts: { content: 0 }', 'timeouts: { content: 90 }', 0],
  ['', 'timeouts: { first_byte: 0 }', 0],
])('content may take as long as the first byte (%s %s)', (own, top, seconds) => {
  expect(provider(own, top).timeouts.contentMs).toBe(seconds * 1000);
});

test.each([
  ['', '', 300, 3600],
  ['', 'retry: { max_cooldown: 60 }', 60, 60],
  [', retry: { max_cooldown: 7200 }', 'retry: { max_cooldown: 60 }', 7200, 7200],
])('the longest rest that is asked for, and of any kind (%s %s)', (own, top, asked, any) => {
  const { maxCooldownMs, maxRestMs } = provider(own, top).retry;
  expect([maxCooldownMs, maxRestMs]).toEqual([asked * 1000, any * 1000]);
});

test('no second request beside a slow one, unless it is asked for', () => {
  expect(provider('').retry.hedge).toBe(false);
  expect(provider('', 'retry: { hedge: true }').retry.hedge).toBe(true);
  expect(provider(', retry: { hedge: false }', 'retry: { hedge: true }').retry.hedge).toBe(false);
});
