/** The target and the key of an attempt. */

import type { Abort } from '../../lib/loop/abort.ts';
import type { RoutedTarget } from '../../routing/index.ts';
import type { Lease } from '../../upstream/health/place.ts';
import type { Session } from '../../upstream/key-ring.ts';
import type { Upstream } from '../../upstream/upstream.ts';

export interface TryAt {
  readonly routed: RoutedTarget;
  readonly upstream: Upstream;
  /** The key to send it with. */
  readonly lease: Lease;
}

export interface AttemptPlace extends TryAt {
  /** Chooses another key if that of the lease cools down before the attempt's turn comes. */
  readonly session: Session;
  /** Ends this attempt alone; left out: only the exchange ends it. */
  readonly abort?: Abort | undefined;
}
