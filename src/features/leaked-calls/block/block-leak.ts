/** Turns a block that was read into a leak: calls, or markup without a call. */

import { buildCalls } from '../build-calls.ts';
import { type Channel, type Leak, leakOf } from '../scan/call-run.ts';
import type { ScanRules } from '../scan/scan-rules.ts';
import type { LeakBlock } from './block.ts';

/** `unreadable`: it may be a call, but reading it would cost too much. */
export function leakIn(
  block: LeakBlock,
  { tools, repairs }: ScanRules,
  channel: Channel,
): { readonly leak: Leak; readonly unreadable: boolean } {
  const { refused } = repairs;
  const { calls: found, family, unreadable: isBroken } = block.reading;
  const calls = found.flatMap((call) => buildCalls(call, tools, repairs));
  const unreadable = repairs.refused > refused || isBroken;
  const leak: Leak = {
    ...leakOf(family, channel, block.truncated),
    calls,
    outcome: calls.length > 0 ? 'recovered' : 'removed',
    unknown: found.find(({ name }) => name && !tools.resolve(name))?.name,
  };
  return { leak, unreadable };
}
