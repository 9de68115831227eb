/** Up to where a target has kept the prompt of a session, whatever came between. */

import { expect, test } from 'bun:test';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type { Turn } from '../../../src/conversation/types.ts';
import { RequestTails } from '../../../src/features/prompt-cache/index.ts';

const target = (provider: string): Target => ({
  provider,
  model: 'm',
  protocol: 'anthropic-messages',
  profile: NO_PROFILE,
});
const A = target('a');
const B = target('b');

const said = (role: Turn['role'], text: string): Turn => ({
  role,
  blocks: [{ type: 'text', text }],
});
const user = (text: string) => said('user', text);
const model = (text: string) => said('assistant', text);

test('the first request has none, and a tail that the history shows needs no memory', () => {
  const tails = new RequestTails();
  expect(tails.previous('s', {}, A, [user('1')])).toEqual([]);
  const fresh = new RequestTails();
  expect(fresh.previous('s', {}, A, [user('1'), model('2'), user('3')])).toEqual([0]);
});

test('calls and results in turns of their own: the real end, not that of the last result', () => {
  const tails = new RequestTails();
  tails.previous('s', {}, A, [user('1')]);
  const turns = [user('1'), model('c1'), user('r1'), model('c2'), user('r2')];
  expect(tails.previous('s', {}, A, turns)).toEqual([0, 2]);
});

test('another target in between, after a try that failed: what the first one had', () => {
  const tails = new RequestTails();
  const turns = [user('1'), model('2'), user('3'), model('4'), user('5'), model('6'), user('7')];
  tails.previous('s', {}, A, turns.slice(0, 1));
  const second = {};
  tails.previous('s', second, A, turns.slice(0, 3));
  tails.failed(second);
  tails.previous('s', second, B, turns.slice(0, 3));
  const third = {};
  tails.previous('s', third, A, turns.slice(0, 5));
  tails.failed(third);
  expect(tails.previous('s', {}, A, turns)).toEqual([0, 4]);
});

test('what was recalled for a turn is gone in the next: the end before it', () => {
  const tails = new RequestTails();
  const recalled = [model('recall'), user('events')];
  const turns = [user('1'), model('c'), user('r'), model('answer'), user('2')];
  tails.previous('s', {}, A, [turns[0]!, ...recalled]);
  tails.previous('s', {}, A, [turns[0]!, ...recalled, turns[1]!, turns[2]!]);
  expect(tails.previous('s', {}, A, [...turns, ...recalled])).toEqual([0, 4]);
});

test('an edited or compacted history has what its own turns show', () => {
  const tails = new RequestTails();
  tails.previous('s', {}, A, [user('1'), model('2'), user('3')]);
  expect(tails.previous('s', {}, A, [user('1'), model('2'), user('edited')])).toEqual([0]);
  expect(tails.previous('s', {}, A, [user('summary')])).toEqual([]);
});

test('sessions do not meet', () => {
  const tails = new RequestTails();
  tails.previous('s', {}, A, [user('1')]);
  const turns = [user('1'), model('c1'), user('r1'), model('c2'), user('r2')];
  expect(tails.previous('other', {}, A, turns)).toEqual([2]);
});
