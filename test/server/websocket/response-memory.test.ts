/** The memory of all connections is bounded: what was used longest ago is forgotten first. */

import { expect, test } from 'bun:test';
import { LaneMemory, MemoryPool } from '../../../src/server/websocket/response-memory.ts';

const pool = (most: number, mostOfAll: number) => new MemoryPool({ most: () => most, mostOfAll });
const item = (size: number) => [{ text: 'x'.repeat(size) }];

test('over all connections, the one that was used longest ago goes', () => {
  const all = pool(1000, 350);
  const memories = [0, 1, 2].map(() => new LaneMemory(all));
  memories[0]!.of('a').remember('r0', [], item(100));
  memories[1]!.of('a').remember('r1', [], item(100));
  expect(memories[0]!.of('a').recall('r0')).toBeDefined();
  memories[2]!.of('a').remember('r2', [], item(150));
  expect(memories[1]!.of('a').recall('r1')).toBeUndefined();
  expect(memories[0]!.of('a').recall('r0')?.items()).toEqual(item(100));
  expect(all.size).toBeLessThanOrEqual(350);
});

test('a conversation that is too large is not remembered, nor the one before it', () => {
  const all = pool(200, 1000);
  const memory = new LaneMemory(all).of(undefined);
  memory.remember('r0', [], item(100));
  memory.remember('r1', memory.recall('r0')!, item(150));
  expect([memory.recall('r0'), memory.recall('r1'), all.size]).toEqual([undefined, undefined, 0]);
});

test('what is forgotten is not counted any more', () => {
  const all = pool(1000, 1000);
  const memory = new LaneMemory(all);
  for (let i = 0; i < 50; i++) memory.of('a').remember(`r${i}`, [], item(100));
  memory.of('b').remember('other', memory.of('b').recall('r49')!, []);
  expect(all.size).toBeLessThan(300);
  memory.clear();
  expect(all.size).toBe(0);
});
