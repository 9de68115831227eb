/** What every request meets is told once, and a flood of names fills no log. */

import { expect, test } from 'bun:test';
import { Throttle } from '../../../src/lib/loop/throttle.ts';

function throttle(most: number) {
  const clock = { now: 0 };
  return { clock, of: new Throttle({ everyMs: 1000, most, now: () => clock.now }) };
}

test('a name is told once in the window, each by itself', () => {
  const { clock, of } = throttle(10);
  expect([of.allows('a'), of.allows('a'), of.allows('b')]).toEqual([true, false, true]);
  clock.now = 999;
  expect(of.allows('a')).toBe(false);
  clock.now = 1000;
  expect([of.allows('a'), of.allows('a')]).toEqual([true, false]);
});

test('no more names are told in a window than were allowed, and later ones again', () => {
  const { clock, of } = throttle(3);
  let told = 0;
  for (let i = 0; i < 1000; i++) if (of.allows(`name ${i}`)) told++;
  expect(told).toBe(3);
  clock.now = 1000;
  expect(of.allows('name 999')).toBe(true);
});

test('in any window as long as the period, at most so many are told, however they come', () => {
  const { clock, of } = throttle(4);
  const told: number[] = [];
  for (let i = 0; i < 5000; i++) {
    clock.now += (i * 7919) % 97;
    if (of.allows(`n${(i * 31) % 13}`)) told.push(clock.now);
  }
  expect(told.length).toBeGreaterThan(100);
  for (const [at, time] of told.entries()) {
    const fifth = told[at + 4];
    if (fifth !== undefined) expect(fifth - time).toBeGreaterThanOrEqual(1000);
  }
});
