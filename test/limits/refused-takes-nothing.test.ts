/** A request that a budget refuses takes nothing from the rate and the slots of its key, in each form of running. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Secret } from '../../src/config/secret.ts';
import type { GatewayError } from '../../src/conversation/errors.ts';
import { type Principal, WITHOUT_KEY } from '../../src/keys/principal.ts';
import { FlatHeaders } from '../../src/lib/http/headers.ts';
import { OwnBank } from '../../src/limits/bank.ts';
import { cacheCounter } from '../../src/limits/cache-counter.ts';
import { LEASE_MS } from '../../src/limits/counters.ts';
import { DatabaseBank } from '../../src/limits/database-bank.ts';
import { openGuard } from '../../src/limits/guard.ts';
import type { Limits, TryAmounts } from '../../src/limits/limits.ts';
import { ProcessLimits, type ProcessLimitsOptions } from '../../src/limits/process-limits.ts';
import {
  FirstProcess,
  type LimitsChannel,
  limitsOfFirst,
} from '../../src/limits/worker-channel.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { ValkeyCache } from '../../src/state/engines/valkey.ts';
import { HAS_CACHE, startCache } from '../support/engines/cache-servers.ts';
import { HAS_POSTGRES, startPostgres } from '../support/engines/database-servers.ts';

const servers: { stop(): Promise<void> }[] = [];
const opened: { close(): void | Promise<void> }[] = [];
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

/** A worker of a process; messages arrive a moment later. */
function worker(): Required<Pick<ProcessLimitsOptions, 'bank' | 'counter'>> {
  const bank = new OwnBank();
  const first = new FirstProcess(new ProcessLimits({ bank }), bank).worker();
  let listener: Parameters<LimitsChannel['listen']>[0] = () => {};
  const places = limitsOfFirst({
    send(question) {
      setTimeout(() => listener(first.answer(structuredClone(question))));
      return true;
    },
    listen: (next) => {
      listener = next;
    },
  });
  return { bank: places.bank, counter: { counter: places.counter, onError: 'closed' } };
}

function sharedCache(): Pick<ProcessLimitsOptions, 'counter'> {
  const address = {
    form: 'single',
    nodes: [{ host: '127.0.0.1', port }],
    db: 0,
    tls: false,
  } as const;
  const cache = new ValkeyCache({ ...address, password: new Secret('') }, () => {});
  opened.push(cache);
  const counter = cacheCounter({ cache, replica: crypto.randomUUID(), leaseMs: LEASE_MS });
  return { counter: { counter, onError: 'closed' } };
}

function sharedDatabase(): Pick<ProcessLimitsOptions, 'bank'> {
  const database = new PostgresDatabase({ url: new Secret(url) }, () => {});
  opened.push(database);
  return { bank: new DatabaseBank({ database }) };
}

function open(options: ProcessLimitsOptions): Limits {
  const limits = new ProcessLimits({ process: crypto.randomUUID(), ...options });
  opened.push(limits);
  return limits;
}

const FORMS: readonly [name: string, possible: boolean, open: () => Limits][] = [
  ['one process', true, () => open({})],
  ['a worker', true, () => open(worker())],
  ['a shared cache', HAS_CACHE, () => open(sharedCache())],
  ['a shared database', HAS_POSTGRES, () => open(sharedDatabase())],
  [
    'a worker with a shared database',
    HAS_POSTGRES,
    () => open({ ...worker(), ...sharedDatabase() }),
  ],
  ['both shared', HAS_CACHE && HAS_POSTGRES, () => open({ ...sharedCache(), ...sharedDatabase() })],
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
    const ask = async (amounts: TryAmounts) => {
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
