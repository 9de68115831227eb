/** Budgets of many replicas in virtual time: random costs, killed replicas, lost draws and answers, without servers. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Secret } from '../../src/config/secret.ts';
import { DatabaseBank } from '../../src/limits/database-bank.ts';
import { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  startPostgres,
} from '../support/engines/database-servers.ts';
import { BankModel } from '../support/simulation/bank-model.ts';
import { COSTS } from '../support/simulation/costs.ts';
import { randomOf, simulate } from '../support/simulation/replicas.ts';

describe('many replicas on one budget', () => {
  const cases = Object.keys(COSTS).flatMap((costs, i) =>
    (['month', 'minute'] as const).map((per) => ({ costs, per, seed: 7 + i })),
  );
  test.each(cases)(
    '$costs, per $per: never above the amount, nothing held at the end',
    async ({ costs, per, seed }) => {
      const all = await simulate({
        replicas: 12,
        streamsOfEach: 200,
        costs: COSTS[costs]!,
        part: 0.5,
        per,
        seed,
        kills: 6,
        lost: 0.02,
      });
      expect(all.admitted + all.refused).toBeGreaterThan(0.98 * 12 * 200);
      expect(all.refused).toBeGreaterThan(0);
      expect(all.overshoot).toBeLessThanOrEqual(0);
      expect(all.trueOvershoot).toBeLessThanOrEqual(0);
      // What killed replicas held counts as spent: too much, never too little.
      expect(all.uncounted).toBeGreaterThanOrEqual(0);
      expect(all.held).toBe(0);
    },
  );

  test('without faults all that is spent is counted, and no request is refused while a tenth is unused', async () => {
    for (const [name, costs] of Object.entries(COSTS)) {
      const all = await simulate({
        replicas: 10,
        streamsOfEach: 1000,
        costs,
        part: 0.6,
        per: 'month',
        seed: 1,
        kills: 0,
        lost: 0,
      });
      expect({ name, uncounted: all.uncounted, held: all.held }).toEqual({
        name,
        uncounted: 0,
        held: 0,
      });
      expect(all.unusedAtRefusal, name).toBeLessThan(0.1);
    }
  });

  test('far from the limit only the first request of a replica waits', async () => {
    const all = await simulate({
      replicas: 10,
      streamsOfEach: 1000,
      costs: COSTS.uniform!,
      part: 10,
      per: 'month',
      seed: 1,
      kills: 0,
      lost: 0,
    });
    expect(all.refused).toBe(0);
    expect(all.waited).toBeLessThanOrEqual(10);
  });
});

describe.skipIf(!HAS_POSTGRES)('the model of the bank', () => {
  let server: DatabaseServer;
  let database: PostgresDatabase;
  beforeAll(async () => {
    server = await startPostgres();
    database = new PostgresDatabase({ url: new Secret(server.url) }, () => {});
  });
  afterAll(async () => {
    await database.close();
    await server.stop();
  });

  test('answers random draws as the function in Postgres does', async () => {
    const HOUR = 3_600_000;
    const bank = new DatabaseBank({ database, sessionMs: HOUR, deadlineMs: 10_000 });
    // The sessions that end do so by hand: two clocks would not agree.
    let now = 0;
    const model = new BankModel(() => now);
    const random = randomOf(3);
    const below = (n: number) => Math.floor(random() * n);
    const numbers = new Map<string, number>();
    let lives = 0;
    const sessions = Array.from({ length: 4 }, () => `s${++lives}`);
    for (let i = 0; i < 400; i++) {
      const which = below(4);
      if (i % 50 === 49) {
        await database.query(
          "UPDATE hopgate.sessions SET until = clock_timestamp() - interval '1 second' WHERE NOT lapsed",
          [],
          10_000,
        );
        now += HOUR + 1;
      }
      const session = sessions[which]!;
      const number = (numbers.get(session) ?? 0) + (i % 11 === 10 ? 0 : 1);
      if (number === 0) continue;
      numbers.set(session, number);
      const places = ['a', 'b'].map((law) => ({ law, start: 0, keepUntil: 9e15 }));
      const settled = places.map((one) => ({ ...one, used: below(900), freed: below(100) }));
      const wanted = places.map((one) => ({
        ...one,
        most: 200_000,
        need: below(1500),
        ahead: below(4000),
      }));
      const closes = i % 37 === 36;
      const real = await bank.draw({ session, number, settled, wanted, closes });
      const modelled = model.draw(
        session,
        number,
        HOUR,
        settled.map(({ law, start, keepUntil, used, freed }) => [
          law,
          start,
          keepUntil,
          used,
          freed,
        ]),
        wanted.map(({ law, start, keepUntil, most, need, ahead }) => [
          law,
          start,
          keepUntil,
          most,
          need,
          ahead,
        ]),
        closes,
      );
      const { grants, lapsed, replicas } = modelled;
      expect({ i, ...real }).toEqual({
        i,
        grants: grants.map(([spent, held, own]) => ({ spent, held, own })),
        lapsed,
        sessions: replicas,
      });
      if (closes) sessions[which] = `s${++lives}`;
    }
  });
});
