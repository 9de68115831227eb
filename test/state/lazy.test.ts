/** What is made late is made once, by the first who needs it. */

import { expect, test } from 'bun:test';
import { lazy } from '../../src/state/lazy.ts';

function counted() {
  let made = 0;
  let size = 3;
  const later = lazy(() => {
    made++;
    return {
      get size() {
        return size;
      },
      grow(by: number) {
        size += by;
        return size;
      },
    };
  });
  return { later, made: () => made };
}

test('nothing is made by who only hands it on', () => {
  const { later, made } = counted();
  const { value } = later;
  expect([typeof value, later.created, made()]).toEqual(['object', undefined, 0]);
});

test('it is made once, by a call or by a question, and behaves as itself', () => {
  const { later, made } = counted();
  expect(later.value.size).toBe(3);
  expect(later.value.grow(2)).toBe(5);
  expect(later.value.size).toBe(5);
  later.create();
  expect(made()).toBe(1);
  expect(later.created?.size).toBe(5);
});

test('it can be opened before its first use', () => {
  const { later, made } = counted();
  later.create();
  expect(made()).toBe(1);
  expect(later.value.size).toBe(3);
});
