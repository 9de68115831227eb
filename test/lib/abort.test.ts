/** Who is told when work is no longer wanted, how often, and by which of the two ways. */

import { expect, test } from 'bun:test';
import { Abort } from '../../src/lib/abort.ts';

const listening = () => {
  const told: unknown[] = [];
  return { told, onAbort: (reason: unknown) => void told.push(reason) };
};

test('only the first reason counts, and everybody is told it once', () => {
  const abort = new Abort();
  const [a, b] = [listening(), listening()];
  abort.listen(a);
  abort.listen(b);
  abort.unlisten(b);
  abort.abort('first');
  abort.abort('second');
  expect([a.told, b.told, abort.reason]).toEqual([['first'], [], 'first']);
});

test('who listens too late is told at once, not never', () => {
  const abort = new Abort();
  abort.abort('gone');
  const late = listening();
  abort.listen(late);
  expect(late.told).toEqual(['gone']);
});

test('its signal is aborted with it, whenever it was asked for', () => {
  const [before, after] = [new Abort(), new Abort()];
  const { signal } = before;
  for (const abort of [before, after]) abort.abort('gone');
  expect([signal.reason, after.signal.reason]).toEqual(['gone', 'gone']);
});

test('it follows a signal until it is told not to, and one that fired before at once', () => {
  const controller = new AbortController();
  const [follows, left, late] = [new Abort(), new Abort(), new Abort()];
  follows.follow(controller.signal);
  left.follow(controller.signal);
  left.unfollow();
  controller.abort('gone');
  late.follow(controller.signal);
  expect([follows.reason, left.aborted, late.reason]).toEqual(['gone', false, 'gone']);
});
