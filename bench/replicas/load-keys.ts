/** How long 20,000 keys take from Postgres to a replica: `bun bench/replicas/load-keys.ts`. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '../../src/config/secret.ts';
import { KeyChanges } from '../../src/keys/key-changes.ts';
import { databaseSource, RunTimeKeys } from '../../src/keys/run-time-keys.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import { startPostgres } from '../../test/support/engines/database-servers.ts';

const KEYS = 20_000;
const ROUNDS = 5;

const server = await startPostgres();
const database = new PostgresDatabase({ url: new Secret(server.url) }, () => {});
const folder = mkdtempSync(join(tmpdir(), 'hopgate-load-keys-'));

function replica(name: string, onLoaded?: () => void): RunTimeKeys {
  return new RunTimeKeys({
    source: databaseSource(database),
    snapshot: join(folder, `${name}.db`),
    warn: (message) => console.error(message),
    ...(onLoaded !== undefined && { onLoaded }),
  });
}

/** One key is made as any other; the rest are its copies, each with an id, a secret and an audit entry of its own. */
async function fill(): Promise<void> {
  const changes = new KeyChanges({ place: replica('first'), routes: () => [] });
  const limits = { requests_per_minute: 60, tokens_per_minute: 100_000 };
  await changes.create({ name: 'Team key', limits }, { actor: 'admin:bench' });
  for (const statement of [
    `INSERT INTO hopgate.audit SELECT n, time, actor, action, target, before, after, previous,
       encode(sha256(n::text::bytea), 'hex') FROM hopgate.audit, generate_series(2, ${KEYS}) n WHERE seq = 1`,
    `INSERT INTO hopgate.keys SELECT left(id, -5) || lpad(n::text, 5, '0'), name, version, created, updated, blocked,
       revoked, settings, json_build_array(jsonb_set((secrets->0)::jsonb, '{digest}',
         to_jsonb(encode(sha256(('key' || n)::bytea), 'hex')))), n
       FROM hopgate.keys, generate_series(2, ${KEYS}) n WHERE change = 1`,
    `UPDATE hopgate.audit_head SET seq = ${KEYS},
       hash = (SELECT hash FROM hopgate.audit WHERE seq = ${KEYS})`,
  ]) {
    await database.query(statement, [], 60_000);
  }
}

try {
  await fill();
  for (let round = 1; round <= ROUNDS; round++) {
    const loaded = Promise.withResolvers<number>();
    const cpu = process.cpuUsage();
    const began = performance.now();
    const keys = replica(`round-${round}`, () => loaded.resolve(performance.now() - began));
    keys.follow();
    const took = await loaded.promise;
    const { user, system } = process.cpuUsage(cpu);
    const found = keys.loaded.find(
      new Bun.CryptoHasher('sha256').update(`key${KEYS}`).digest('hex'),
    );
    if (found === undefined) throw new Error('the last key is not there');
    console.log(
      `${keys.report.keys} keys in ${Math.round(took)} ms (goal 1000), CPU ${Math.round((user + system) / 1000)} ms`,
    );
    await keys.close();
  }
} finally {
  await database.close();
  await server.stop();
  rmSync(folder, { recursive: true });
}
