/** Checks of every engine for `hopgate doctor`: how fast it answers, and whether its clock agrees. */

import type { EngineFinding } from './engine.ts';

const SLOW_MS = 10;
const MAX_SKEW_MS = 2000;

export const finding = (
  status: EngineFinding['status'],
  message: string,
  hint?: string,
): EngineFinding => ({ status, message, ...(hint !== undefined && { hint }) });

/** @param times milliseconds of some round trips */
export function latencyFinding(times: readonly number[]): EngineFinding {
  const middle = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;
  const message = `answers in ${middle < 1 ? middle.toFixed(2) : middle.toFixed(1)} ms`;
  if (middle <= SLOW_MS) return finding('ok', message);
  const hint = 'Requests near a limit wait for it: put the gateway into the same network.';
  return finding('warn', message, hint);
}

/** @param doubt what the measurement itself may be off by, in milliseconds */
export function clockFinding(skewMs: number, doubt: number): EngineFinding {
  const off = Math.abs(skewMs);
  if (off <= MAX_SKEW_MS + doubt) return finding('ok', 'its clock agrees with this one');
  const message = `its clock and this one differ by ${Math.round(off / 1000)} s`;
  return finding('warn', message, 'Run a time service on both machines.');
}
