/** The time by which data is deleted, while the clock of the machine is wrong. */

import { expect, test } from 'bun:test';
import { PatientClock } from '../../../src/lib/loop/patient-clock.ts';

const DAY = 86_400_000;
const START = Date.UTC(2026, 10, 29);

/** A clock over a machine whose time passes by hand. */
function machine(newest: number | undefined) {
  const time = { wall: START, monotonic: 5000 };
  const clock = new PatientClock(
    newest,
    () => time.wall,
    () => time.monotonic,
  );
  return {
    now: () => (clock.now() - START) / DAY,
    pass(days: number) {
      time.wall += days * DAY;
      time.monotonic += days * DAY;
    },
    jump(days: number) {
      time.wall += days * DAY;
    },
  };
}

test.each([2, 31, 5000])(
  'a clock that jumps %d days forward and back is never believed',
  (days) => {
    const { now, pass, jump } = machine(START);
    pass(3);
    expect(now()).toBe(3);
    jump(days);
    expect(now()).toBe(3);
    pass(0.5);
    expect(now()).toBe(3.5);
    jump(-days);
    expect(now()).toBe(3.5);
    pass(1);
    expect(now()).toBe(4.5);
  },
);

test('a clock that stays ahead for a day is believed', () => {
  const { now, pass, jump } = machine(START);
  jump(31);
  expect(now()).toBe(0);
  pass(0.9);
  expect(now()).toBeCloseTo(0.9);
  pass(0.2);
  expect(now()).toBeCloseTo(32.1);
});

test('a start with a clock that is far ahead of the newest data deletes by age only a day later', () => {
  const { now, pass } = machine(START - 40 * DAY);
  expect(now()).toBe(-40);
  pass(1);
  expect(now()).toBe(1);
});

test('hours without data, a clock that is set back, and no data at all hold up nothing', () => {
  expect(machine(START - DAY / 2).now()).toBe(0);
  expect(machine(START + DAY).now()).toBe(0);
  expect(machine(undefined).now()).toBe(0);
  const { now, jump } = machine(START);
  jump(-10);
  expect(now()).toBe(-10);
  jump(0.5);
  expect(now()).toBe(-9.5);
});
