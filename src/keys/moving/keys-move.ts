/** Moves keys with the digests of their secrets between the file of a machine and the database of all replicas. */

import { type MovePass, pagedMove, type Standing } from '../../state/moving/paged-move.ts';
import type { StateMove } from '../../state/state-move.ts';
import { auditView } from '../audited-keys.ts';
import type { KeyChange, PlannedChange, SecretRecord } from '../key-store.ts';
import { type KeySides, type KeysMoveOptions, openSides } from './key-sides.ts';

const PAGE = 500;
/** Ids that a note names. */
const MAX_NAMED = 10;

export const keysMove = (options: KeysMoveOptions): StateMove =>
  pagedMove<KeyChange>({
    name: 'keys',
    item: 'key',
    engine: 'database',
    open: async (writes) => passOver(await openSides(options, writes), options),
  });

function passOver(sides: KeySides, { actor }: KeysMoveOptions): MovePass<KeyChange> {
  const { source, target } = sides;
  /** The first ones that differ. */
  const named: string[] = [];
  return {
    count: () => source?.count ?? 0,
    async *pages() {
      for (let after = ''; source !== undefined; ) {
        const page = await source.page(after, PAGE);
        if (page.length > 0) yield page;
        if (page.length < PAGE) return;
        after = page.at(-1)!.record.id;
      }
    },
    async standings(page) {
      const there = (await target?.many(page.map(({ record: { id } }) => id))) ?? [];
      const byId = new Map(there.map((one) => [one.record.id, one]));
      return page.map((one) => {
        const standing = standingOf(one, byId.get(one.record.id));
        if (standing === 'differs' && named.length < MAX_NAMED) named.push(one.record.id);
        return standing;
      });
    },
    async write(missing) {
      let written = 0;
      for (const one of missing) {
        try {
          await target!.change(one.record.id, (now) => planFor(one, now, actor));
          written++;
        } catch (thrown) {
          if (!(thrown instanceof Overtaken)) throw thrown;
        }
      }
      await sides.changed();
      return written;
    },
    notes: ({ differs }) =>
      differs === 0
        ? []
        : [
            `${differs} were changed on both sides since they were the same, and stay as they are on each (${named.join(', ')}${differs > named.length ? ' …' : ''}). A change on one side makes that one the newer.`,
          ],
    close: () => sides.close(),
  };
}

/** Between the comparison and the change, the target got what it lacked. */
class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

/**
 * A revoked key stays revoked. Else the greater version is the newer one. Two machines' clocks are not compared: a
 * key that was changed as often on both sides is left alone.
 */
function standingOf(ours: KeyChange, theirs: KeyChange | undefined): Standing {
  if (theirs === undefined) return 'missing';
  const [own, other] = [ours.record, theirs.record];
  if (own.revoked !== undefined && other.revoked === undefined) return 'missing';
  if (own.revoked === undefined && other.revoked !== undefined) return 'there';
  if (own.version !== other.version) return own.version > other.version ? 'missing' : 'there';
  return isSame(ours, theirs) ? 'there' : 'differs';
}

function planFor(ours: KeyChange, now: KeyChange | undefined, actor: string): PlannedChange {
  if (standingOf(ours, now) !== 'missing') throw new Overtaken('nothing is missing any more');
  const { record, secrets } = now === undefined ? ours : replaced(ours, now);
  const before = now === undefined ? null : auditView(now);
  const audit = {
    time: Date.now(),
    actor,
    action: 'key.import',
    before,
    after: auditView({ record, secrets }),
  };
  return { record, secrets, audit };
}

/** What was changed after the revocation on the other side stays, but the key is revoked. */
function replaced(ours: KeyChange, now: KeyChange): KeyChange {
  if (ours.record.version >= now.record.version) return ours;
  const { revoked } = ours.record;
  const version = now.record.version + 1;
  return { record: { ...now.record, version, updated: Date.now(), revoked }, secrets: [] };
}

const isSame = (one: KeyChange, other: KeyChange): boolean =>
  Bun.deepEquals(one.record, other.record) &&
  Bun.deepEquals(one.secrets.map(factsOf).sort(), other.secrets.map(factsOf).sort());

const factsOf = ({ digest, created, until }: SecretRecord) =>
  `${digest} ${created} ${until ?? 'always'}`;
