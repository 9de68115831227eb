/** The owners of files and batches move between a file and a real Postgres: each once, sealed there, and settled once. */

import { beforeEach, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  MOVED_OBJECTS,
  VENDOR_OBJECTS_SCHEMA,
  type VendorObject,
  VendorObjects,
} from '../../src/endpoints/batches/vendor-objects.ts';
import type { Sql } from '../../src/state/engines/engine.ts';
import type { PostgresDatabase } from '../../src/state/engines/postgres.ts';
import type { MoveDirection } from '../../src/state/move/paged-move.ts';
import { tableMove } from '../../src/state/move/table-move.ts';
import { openPostgres } from '../../src/state/sql/postgres.ts';
import { openSqlite } from '../../src/state/sql/sqlite.ts';
import { AS_IT_IS, textSeal } from '../../src/state/text-seal.ts';
import { HAS_POSTGRES } from '../support/engines/database-servers.ts';
import { countsOf, cutAt, dumpOf, filesIn, moveSetup } from '../support/moves.ts';

const SEAL = textSeal(['a secret of the tests, long enough to seal texts']);
const DUE = [
  { asked: 'm', model: 'up-m', requests: 2, bytes: 10, answers: 2, request: 'req_1', maxTokens: 5 },
];

const objectOf = (id: string, more: Partial<VendorObject> = {}): VendorObject => ({
  owner: 'ann',
  id,
  kind: 'file',
  api: 'openai',
  provider: 'vendor',
  upstreamKey: undefined,
  made: 1_790_000_000_123,
  object: { id, filename: `secret-${id}.jsonl` },
  ...more,
});
const BATCH = objectOf('batch_1', { kind: 'batch', upstreamKey: 'second', due: DUE });

describe.skipIf(!HAS_POSTGRES)('files and batches that are moved', () => {
  const setup = moveSetup();
  let database: PostgresDatabase;
  let folder: string;
  let path: string;
  beforeEach(async () => {
    database = await setup.emptyDatabase();
    folder = setup.newFolder();
    path = join(folder, 'vendor-objects.db');
  });
  const move = (to: MoveDirection, at = path, through: Sql = database) =>
    tableMove(MOVED_OBJECTS, { database: through, seal: SEAL, path: at, to });
  const copy = (to: MoveDirection, at?: string) => move(to, at).copy(() => {});
  async function inFile<T>(work: (objects: VendorObjects) => Promise<T>, at = path): Promise<T> {
    const objects = new VendorObjects(openSqlite(VENDOR_OBJECTS_SCHEMA, { path: at }), AS_IT_IS);
    return work(objects).finally(() => objects.close());
  }
  const there = () => new VendorObjects(openPostgres(database, VENDOR_OBJECTS_SCHEMA), SEAL);
  const keep = (...objects: readonly VendorObject[]) =>
    inFile(async (store) => {
      for (const one of objects) await store.put(one);
    });

  test('all come with what is still to be settled, once, sealed, and back into another file', async () => {
    expect(await move('engines').compare()).toMatchObject({ items: 0, missing: 0 });
    expect(await copy('engines')).toBe(0);
    expect(existsSync(path)).toBe(false);
    const many = Array.from({ length: 130 }, (_, n) =>
      objectOf(`file_${n}`, { owner: `o${n % 3}` }),
    );
    const all = [...many, BATCH];
    await keep(...all);
    const files = filesIn(folder);
    expect(await countsOf(move('engines'))).toEqual({ items: 131, missing: 131, conflicts: 0 });
    expect(await dumpOf(database)).toBe('');
    // Three transactions make tables; this is the second of three batches.
    const cut = move('engines', path, cutAt(database, 5, 'after'));
    await expect(cut.copy(() => {})).rejects.toThrow('cut');
    expect(await copy('engines')).toBe(3);
    expect(await copy('engines')).toBe(0);
    expect(filesIn(folder)).toEqual(files);
    expect(await dumpOf(database)).not.toContain('secret-');
    expect(await there().get('ann', 'batch_1')).toEqual(BATCH);
    expect(await there().get('ann', 'file_1')).toBeUndefined();
    const other = join(folder, 'other.db');
    expect(await copy('embedded', other)).toBe(131);
    expect(await countsOf(move('embedded', other))).toMatchObject({ missing: 0 });
    const back = await inFile(
      (store) => Promise.all(all.map(({ owner, id }) => store.get(owner, id))),
      other,
    );
    expect(back).toEqual(all);
  });

  test('a batch that one side has settled after a copy is not settled by the other one once more', async () => {
    await keep(BATCH);
    await copy('engines');
    expect(await inFile((store) => store.takeDue('ann', 'batch_1'))).toEqual(DUE);
    expect(await countsOf(move('engines'))).toEqual({ items: 1, missing: 1, conflicts: 0 });
    expect(await copy('engines')).toBe(1);
    expect(await countsOf(move('engines'))).toMatchObject({ missing: 0 });
    expect(await there().takeDue('ann', 'batch_1')).toBeUndefined();
    // One that is due on the source alone stays settled in the target.
    await inFile((store) => store.giveBackDue('ann', 'batch_1'));
    expect(await countsOf(move('engines'))).toMatchObject({ missing: 0 });
  });

  test('what was removed on one side after a copy does not come back, and what stays on the other is told', async () => {
    await keep(objectOf('file_1'), objectOf('file_2'));
    await copy('engines');
    await there().remove('ann', 'file_1');
    expect(await move('engines').compare()).toMatchObject({
      missing: 0,
      notes: ['1 were removed there, and are not copied again.'],
    });
    expect(await copy('engines')).toBe(0);
    await inFile((store) => store.remove('ann', 'file_2'));
    expect((await move('engines').compare()).notes?.at(-1)).toStartWith(
      '1 that were on both sides',
    );
  });
});
