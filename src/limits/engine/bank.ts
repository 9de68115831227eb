/** What the engine needs of a store: sums that outlive the process, drawn from ahead of use. */

import type { Period } from './window.ts';

export interface Draw {
  readonly period: Period;
  /** What is to be counted for this process, at least what it has used. */
  readonly want: number;
  /** What all processes together may have; what is used already counts even beyond that. */
  readonly most: number;
}

export interface Bank {
  /**
   * Sets `drawn` and `others` of each period, all or none.
   * @returns false: the file cannot be used now; nothing is changed
   */
  draw(draws: readonly Draw[]): boolean;
  /** The debt of a rate as it was written down, and how many milliseconds ago that was. */
  rate(id: string): { readonly debt: number; readonly passed: number } | undefined;
}
