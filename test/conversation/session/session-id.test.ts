/** The session id of a request: each sign that clients send, and which one counts. */

import { expect, test } from 'bun:test';
import { sessionOf } from '../../../src/conversation/session/session-id.ts';

const UUID = '01234567-89ab-cdef-0123-456789abcdef';
const of = (headers: Record<string, string>, body: object | string = {}) =>
  sessionOf(
    new Headers(headers),
    Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  );
const metadata = (user_id: string) => ({ model: 'm', metadata: { user_id } });

test.each([
  'x-claude-code-session-id',
  'session_id',
  'session-id',
  'x-session-id',
  'conversation_id',
  'x-conversation-id',
])('the header %s tells it, before the body', (name) => {
  expect(of({ [name]: 'one' }, { prompt_cache_key: 'two' })).toBe('one');
});

test.each<[string, object, string]>([
  ['Claude Code of before', metadata(`user_a1_account_b2_session_${UUID}`), UUID],
  ['Claude Code of now', metadata(JSON.stringify({ device_id: 'd', session_id: UUID })), UUID],
  ['a cache key', { input: 'hi', prompt_cache_key: 'thread-7' }, 'thread-7'],
  ['a user id without a session', metadata('user-17'), ''],
  ['a cache key that is no text', { prompt_cache_key: 7 }, ''],
  ['nothing', { model: 'm' }, ''],
])('the body tells it: %s', (_name, body, session) => {
  expect(of({}, body)).toBe(session);
});

test('the first sign counts, and a very long one is cut', () => {
  expect(of({ 'x-session-id': 'later', 'x-claude-code-session-id': 'first' })).toBe('first');
  expect(of({ 'x-session-id': 'x'.repeat(5000) })).toHaveLength(100);
  expect(of({ 'x-session-id': '' }, { prompt_cache_key: 'k' })).toBe('k');
});

test('bytes that are no JSON have none', () => {
  expect(of({}, '"user_id"')).toBe('');
  expect(of({}, '')).toBe('');
});
