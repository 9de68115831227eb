/** Logs requests to paths that this gateway does not have: mostly a client whose base address lacks or repeats `/v1`. */

import { Throttle } from '../../lib/loop/throttle.ts';
import type { UnknownPath } from '../../server/errors.ts';
import { shortAgent } from '../../telemetry/client-name.ts';
import { event, type Log } from '../../telemetry/log.ts';

/** At most one line a minute for each path, and 20 in all: a scanner fills no log. */
export function logUnknownPaths(log: Log, addressOf: (request: Request) => string | undefined) {
  const throttle = new Throttle({ everyMs: 60_000, most: 20 });
  return (request: Request, { method, path, use }: UnknownPath): void => {
    // Browsers and crawlers ask for icons and the like by themselves.
    if (use === undefined && (method === 'GET' || method === 'HEAD')) return;
    if (!throttle.allows(`${method} ${path}`)) return;
    const client = shortAgent(request.headers.get('user-agent') ?? undefined);
    const address = addressOf(request);
    event(log, 'path.unknown', { method, path, use, client, address }, 'warn');
  };
}
