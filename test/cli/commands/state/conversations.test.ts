/** `hopgate state move` of what conversations left behind, as a person runs it, and what `hopgate doctor` says before and after. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import {
  type DatabaseServer,
  HAS_POSTGRES,
  newDatabase,
  startPostgres,
} from '../../../support/engines/database-servers.ts';
import { filesIn } from '../../../support/moves.ts';
import { fileStore, storedRow } from '../../../support/stored-rows.ts';
import { createWorld, type World } from '../../world.ts';

const provider = { protocol: 'openai-chat', base_url: 'http://127.0.0.1:1/v1' };

describe.skipIf(!HAS_POSTGRES)('hopgate state move', () => {
  let server: DatabaseServer;
  let world: World;
  let config: string;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    const { url, database } = await newDatabase(server);
    await database.close();
    world = createWorld();
    world.variables.HOPGATE_HOME = join(world.home, 'own');
    config = world.write(
      'hopgate.yaml',
      JSON.stringify({ providers: { p: provider }, engines: { database: url } }),
    );
  });
  afterEach(() => world.remove());

  const run = (...argv: readonly string[]) => world.run([...argv, '--config', config]);
  const keep = async (...ids: readonly string[]) => {
    const path = join(world.variables.HOPGATE_HOME!, 'state', 'responses.db');
    const store = fileStore(path);
    for (const id of ids) store.put(storedRow(id));
    await store.close();
  };
  const state = async () => {
    const ran = await run('doctor', '--no-completion', '--json');
    const { findings } = JSON.parse(ran.out) as {
      findings: { about: string; status: string; message: string }[];
    };
    return findings.filter(({ about }) => about === 'state');
  };

  test('doctor warns, a dry run only looks, a copy copies, a second one finds nothing to do', async () => {
    expect(await state()).toEqual([]);
    await keep('one', 'two');
    expect(await state()).toMatchObject([
      { status: 'warn', message: '2 responses of this machine are not in the engines' },
    ]);
    const before = filesIn(world.home);
    const dry = await run('state', 'move', '--to', 'engines', '--only', 'responses', '--dry-run');
    expect([dry.code, dry.err]).toEqual([0, '']);
    expect(dry.out).toMatch(/state +in all +already there +to copy +differ\nresponses +2 +0 +2 +0/);
    expect(filesIn(world.home)).toEqual(before);
    const copied = await run('state', 'move', '--to', 'engines', '--only', 'responses,memory');
    expect([copied.code, copied.err]).toEqual([0, '']);
    expect(copied.out).toMatch(/responses +2 +0 +2 +0/);
    expect(copied.out).toMatch(/memory +0 +0 +0 +0/);
    await keep('three');
    const third = await run('state', 'move', '--to', 'engines', '--only', 'responses');
    expect(third.out).toMatch(/responses +3 +2 +1 +0/);
    const again = await run('state', 'move', '--to', 'engines', '--only', 'responses', '--json');
    expect(JSON.parse(again.out)).toMatchObject({
      to: 'engines',
      dry_run: false,
      state: [{ name: 'responses', copied: 0, after: { items: 3, missing: 0 } }],
    });
    expect(await state()).toMatchObject([{ status: 'ok' }]);
    const back = await run('state', 'move', '--to', 'embedded', '--only', 'responses');
    expect(back.out).toMatch(/responses +3 +3 +0 +0/);
  });
});
