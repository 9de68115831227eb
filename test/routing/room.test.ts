/** Targets whose windows are too small for a prompt are tried last. */

import { expect, test } from 'bun:test';
import type { ProviderConfig } from '../../src/config/sections/providers.ts';
import { withRoomFirst } from '../../src/routing/room.ts';
import { targetOf } from '../../src/routing/targets.ts';

const provider = (name: string, context?: number) =>
  targetOf(
    {
      name,
      protocol: 'openai-chat',
      profile: { name: 'none' },
      facts: context === undefined ? {} : { m: { context } },
    } as unknown as ProviderConfig,
    'm',
  );

const small = provider('small', 10_000);
const large = provider('large', 1_000_000);
const unknown = provider('unknown');
const names = (bytes: number, tokens: number, ...targets: (typeof small)[]) =>
  withRoomFirst(targets, bytes, { tokens }).map((routed) => routed.target.provider);

test('the small one goes behind those with room, and those of which nothing is known', () => {
  expect(names(200_000, 50_000, small, large, unknown)).toEqual(['large', 'unknown', 'small']);
});

test('what fits stays in order', () => {
  expect(names(30_000, 7000, small, large)).toEqual(['small', 'large']);
  expect(names(50_000, 11_000, small, large)).toEqual(['small', 'large']);
  expect(names(5_000_000, 1_500_000, small, large)).toEqual(['small', 'large']);
  expect(names(200_000, 50_000, unknown, small)).toEqual(['unknown', 'small']);
});

test('an estimate is made only where it may matter', () => {
  const never = {
    get tokens(): number {
      throw new Error('estimated');
    },
  };
  const one = [small];
  expect(withRoomFirst(one, 1e9, never)).toBe(one);
  const both = [small, large];
  expect(withRoomFirst(both, 8000, never)).toBe(both);
  expect(withRoomFirst([unknown, large], 900_000, never)).toHaveLength(2);
});
