/** Events are added in steps whose size counts all that is indexed of them. */

import { expect, test } from 'bun:test';
import type { CheckedEvent } from '../../../../src/features/memory/event.ts';
import { inSteps } from '../../../../src/features/memory/store/own-memory.ts';

const event = (more: Partial<CheckedEvent>): CheckedEvent => ({
  time: 0,
  text: 'a',
  source: '',
  tags: [],
  importance: 0.5,
  ...more,
});

const KINDS: readonly (readonly [string, CheckedEvent])[] = [
  ['long texts', event({ text: 'x'.repeat(3000) })],
  ['many tags', event({ tags: Array.from({ length: 32 }, (_, i) => `${i}`.padEnd(100, 'x')) })],
  ['long sources', event({ source: 's'.repeat(200) })],
  ['next to nothing', event({})],
];

test.each(KINDS)('a thousand events with %s are many steps', async (_, one) => {
  const steps: number[] = [];
  const add = async (step: readonly CheckedEvent[]) => {
    steps.push(step.length);
    return [];
  };
  await inSteps(Array(1000).fill(one), add, async () => {});
  expect(steps.reduce((sum, size) => sum + size, 0)).toBe(1000);
  const characters = one.text.length + one.source.length + one.tags.join().length;
  expect(Math.max(...steps)).toBeLessThanOrEqual(Math.max(1, 16_000 / characters));
  expect(Math.max(...steps)).toBeLessThanOrEqual(160);
});
