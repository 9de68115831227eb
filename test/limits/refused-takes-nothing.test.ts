/** A request that a budget refuses takes nothing from the rate and the slots of its key, in each form of running. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Secret } from '../../src/config/secret.ts';
import type { GatewayError } from '../../src/conversation/errors.ts';
import { type Principal, WITHOUT_KEY } from '../../src/keys/principal.ts';
import { FlatHeaders } from '../../src/lib/http/headers.ts';
import { LocalLimits } from '../../src/limits/engine/local-limits.ts';
import { type Amounts, openGuard } from '../../src/limits/guard.ts';
import { SYSTEM_CLOCK } from '../../src/limits/kept-limits.ts';
import type { Limits } from '../../src/limits/limits.ts';
import { openShared } from '../../src/limits/shared/open-shared.ts';
import { type LimitsChannel, RemoteLimits, WorkerLimits } from '../../src/limits/worker-channel.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { ValkeyCache } from '../../src/state/engines/valkey.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import { HAS_POSTGRES, startPostgres } from '../support/engines/database-servers.ts';

const servers: { stop(): Promise<void> }[] = [];
const opened: { close(): Promise<void> }[] = [];
let port = 0;
let url = '';
beforeAll(async () => {
  if (HAS_CACHE) {
    const cache = await startCache();
    servers.push(cache);
    ({ port } = cache);
  }
  if (HAS_POSTGRES) {
    const database = await startPostgres();
    servers.push(database);
    ({ url } = database);
  }
});
afterAll(async () => {
  for (const one of opened.reverse()) await one.close();
  for (const one of servers) await one.stop();
});

const here = () => new LocalLimits({ clock: SYSTEM_CLOCK });

/** A worker of a process with these limits; messages arrive a moment later. */
function worker(limits: LocalLimits): Limits {
  const first = new WorkerLimits(limits);
  let listener: Parameters<LimitsChannel['listen']>[0] = () => {};
  return new RemoteLimits({
    send(question) {
      setTimeout(() => listener(first.answer(structuredClone(question))));
      return true;
    },
    listen: (next) => {
      listener = next;
    },
  });
}

function shared(own: Limits, engines: { readonly cache?: true; readonly database?: true }): Limits {
  const address = {
    form: 'single',
    nodes: [{ host: '127.0.0.1', port }],
    db: 0,
    tls: false,
  } as const;
  const cache =
    engines.cache && new ValkeyCache({ ...address, password: new Secret('') }, () => {});
  const database = engines.database && new PostgresDatabase({ url: new Secret(url) }, () => {});
  const together = openShared(
    { cache, database, replica: crypto.randomUUID(), onError: 'closed' },
    own,
    () => {},
  );
  for (const one of [cache, database, together]) if (one !== undefined) opened.push(one);
  return together.limits;
}

const FORMS: readonly [name: string, possible: boolean, open: () => Limits][] = [
  ['one process', true, here],
  ['a worker', true, () => worker(here())],
  ['a shared cache', HAS_CACHE, () => shared(here(), { cache: true })],
  ['a shared database', HAS_POSTGRES, () => shared(here(), { database: true })],
  [
    'a worker with both shared',
    HAS_CACHE && HAS_POSTGRES,
    () => shared(worker(here()), { cache: true, database: true }),
  ],
];
const FITS = { tokens: 10, nanoUsd: 1000 };
const TOO_LARGE = { tokens: 10, nanoUsd: 2e6 };

/** A key of three requests a minute, one at a time, and a tenth of a cent a day. */
function someKey(): Principal {
  const id = crypto.randomUUID();
  const over = { action: 'refuse' } as const;
  const budget = {
    id,
    name: id,
    nanoUsd: 1e6,
    per: 'day',
    timeZone: 'UTC',
    warn: [],
    over,
  } as const;
  const limits = { requestsPerMinute: 3, concurrent: 1 };
  return { ...WITHOUT_KEY, id, name: id, limits, budgets: [budget] };
}

for (const [name, possible, openLimits] of FORMS) {
  test.skipIf(!possible)(`${name}: what a budget refuses takes nothing from the rate`, async () => {
    const principal = someKey();
    const options = { limits: openLimits(), onRefused: () => {} };
    const ask = async (amounts: Amounts) => {
      const guard = (await openGuard(options, principal))!;
      const headers = FlatHeaders.of({});
      try {
        const hold = await guard.reserve(amounts);
        hold?.settle(amounts);
        return 'admitted';
      } catch (thrown) {
        return (thrown as GatewayError).code;
      } finally {
        guard.addHeaders(headers);
        guard.end();
        left = headers.get('x-ratelimit-remaining-requests');
      }
    };
    let left: string | null | undefined;
    // More requests than the rate allows, and each one would hold the only slot.
    for (let i = 0; i < 6; i++)
      expect([await ask(TOO_LARGE), left]).toEqual(['insufficient_quota', '3']);
    for (const rest of ['2', '1']) expect([await ask(FITS), left]).toEqual(['admitted', rest]);
    // A try that costs all that is left: from here on, the exchange itself is refused.
    expect(await ask({ tokens: 10, nanoUsd: 1e6 - 2 * FITS.nanoUsd })).toBe('admitted');
  });
}
