/** The parts of the gateway that a reload replaces: routes, providers, the queue. */

import type { RoutedTarget, RoutingTable } from '../routing/index.ts';
import type { ConcurrencyLimit } from '../upstream/concurrency-limit.ts';
import type { Upstream } from '../upstream/upstream.ts';

/** What may change while the process runs (a reload); read once per exchange. */
export interface Services {
  readonly table: RoutingTable;
  readonly upstream: (routed: RoutedTarget) => Upstream;
  /** The tokens of a target's context window; undefined where they are not known. */
  readonly room?: (routed: RoutedTarget) => number | undefined;
  /** How many exchanges may run at a time. */
  readonly slots: ConcurrencyLimit;
}
