/** A target of the benchmark: its name, and what a run of benchmarks works with. */

import type { Child } from './children.ts';
import type { Entrance } from './scenarios.ts';

export const TARGET_NAMES = [
  'direct',
  'nginx',
  'relay',
  'hopgate',
  'hopgate-armed',
  'hopgate-recording',
  'hopgate-limited',
  'hopgate-traced',
  'hopgate-m2c',
  'hopgate-c2m',
  'hopgate-g2g',
  'hopgate-g2c',
  'hopgate-c2g',
  'portkey',
  'portkey-conv',
  'ccr-conv',
] as const;

export type TargetName = (typeof TARGET_NAMES)[number];

/** What a run of benchmarks works with. */
export interface Bench {
  readonly mockPort: number;
  readonly mockPid: number;
  /** A folder of this run, removed at its end. */
  readonly dir: string;
  /** Logs a line when the target is ready. */
  say(line: string): void;
  /** The program that is measured, and what its environment has besides; left out: this checkout's. */
  readonly program?: { readonly binary: string; readonly env: Readonly<Record<string, string>> };
}

export interface Target extends Entrance {
  readonly name: TargetName;
  readonly pid: number;
  readonly version: string;
  readonly child?: Child;
}
