/** Shows the states of all targets in a metric. */

import { type HealthSnapshot, STATE_VALUES } from '../../upstream/health/snapshot.ts';

/** @returns a function that is called before each rendering of the metrics */
export function targetStates(gauge: { set(value: number, target: string): void }) {
  let shown: ReadonlySet<string> = new Set();
  return (targets: HealthSnapshot['targets']): void => {
    // A target that a reload took away must not stay so for ever.
    for (const target of shown) gauge.set(STATE_VALUES.serving, target);
    for (const { target, state } of targets) gauge.set(STATE_VALUES[state], target);
    shown = new Set(targets.map(({ target }) => target));
  };
}
