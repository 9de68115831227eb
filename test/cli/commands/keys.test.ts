/** `hopgate keys` and `hopgate audit` on the file: what they print, and which mistakes they refuse before anything is written. */

import { Database } from 'bun:sqlite';
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { createWorld, type World } from '../world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

test('the list shows limits and budgets', async () => {
  const more = ['--requests-per-minute', '3', '--concurrent', '2', '--budgets', '20/day,200/month'];
  await world.run(['keys', 'create', 'ci', ...more]);
  const { out } = await world.run(['keys', 'list']);
  expect(out).toMatch(/ LIMITS +BUDGETS /);
  expect(out).toMatch(/ 3 requests\/min, 2 at a time +20\/day,200\/month/);
});

test('a new key says that nobody needs one until the configuration has admin keys', async () => {
  const hint = 'as long as the configuration has no auth.admin_keys';
  const said = async () =>
    (await world.run(['keys', 'create', 'ci'])).err.replace(/\s+/g, ' ').includes(hint);
  expect(await said()).toBe(true);
  world.write('.config/hopgate/hopgate.yaml', 'auth: { admin_keys: [an-admin-key-1234] }\n');
  expect(await said()).toBe(false);
});

test('a key goes to stdout alone; list and show never have it', async () => {
  const made = await world.run([
    'keys',
    'create',
    'ci',
    '--labels',
    'team=web',
    '--concurrent',
    '3',
  ]);
  const key = made.out.trim();
  expect([made.code, key]).toEqual([0, expect.stringMatching(/^hk_\w{22}_\w{44}$/)]);
  const listed = await world.run(['keys', 'list']);
  expect(listed.out).toContain('team=web');
  const shown = await world.run(['keys', 'show', key.slice(0, 25)]);
  expect(JSON.parse(shown.out)).toMatchObject({ name: 'ci', limits: { concurrent: 3 } });
  expect(listed.out + shown.out).not.toContain(key.slice(-44));
  const blocked = await world.run(['keys', 'block', key.slice(0, 25)]);
  expect(JSON.parse(blocked.out)).toMatchObject({ blocked: true, version: 2 });
});

test('a name stands for its key as long as no other key has it', async () => {
  const id = (await world.run(['keys', 'create', 'ci'])).out.slice(0, 25);
  expect(JSON.parse((await world.run(['keys', 'block', 'ci'])).out)).toMatchObject({
    id,
    blocked: true,
  });
  expect(JSON.parse((await world.run(['keys', 'show', 'ci'])).out)).toMatchObject({
    id,
    name: 'ci',
  });
  expect((await world.run(['keys', 'rotate', 'ci'])).out).toStartWith(id);
  const other = (await world.run(['keys', 'create', 'ci'])).out.slice(0, 25);
  const both = await world.run(['keys', 'revoke', 'ci']);
  expect(both.code).toBe(1);
  expect(both.err).toContain('2 keys are named "ci"');
  expect(both.err.replace(/\s+/g, ' ')).toContain(other);
  // A revoked key no longer has the name.
  await world.run(['keys', 'revoke', other]);
  expect(JSON.parse((await world.run(['keys', 'show', 'ci'])).out)).toMatchObject({ id });
  expect(await world.run(['keys', 'show', 'cj'])).toMatchObject({ code: 1 });
});

test.each([
  [['keys', 'create'], 2],
  [['keys', 'create', 'a', 'b'], 2],
  [['keys', 'create', 'a', '--labels', 'web'], 2],
  [['keys', 'create', 'a', '--budgets', '20'], 2],
  [['keys', 'create', 'a', '--budgets', '20/decade'], 2],
  [['keys', 'create', 'a', '--expires', 'soon'], 1],
  [['keys', 'update', 'hk_x'], 2],
  [['keys', 'show', 'hk_x'], 1],
  [['keys', 'list', '--url', 'http://127.0.0.1:1'], 2],
  [['audit', 'list'], 2],
])('%j exits with %i', async (argv, code) => {
  const ran = await world.run(argv);
  expect([ran.code, ran.err === '']).toEqual([code, false]);
  expect((await world.run(['keys', 'list', '--json'])).out).toContain('"keys": []');
});

test('a gateway that cannot write keys: the message says where the cause is', async () => {
  const message = 'The file of the keys cannot be used now.';
  let status = 503;
  world.fetch = (async () =>
    Response.json({ error: { message } }, { status })) as unknown as typeof fetch;
  Object.assign(world.variables, { HOPGATE_ADMIN_KEY: 'admin-key-1234' });
  const failed = await world.run(['keys', 'create', 'ci']);
  expect(failed.code).toBe(1);
  expect(failed.err).toContain(`${message} The log of the gateway says why`);
  status = 409;
  expect((await world.run(['keys', 'create', 'ci'])).err).toBe(`hopgate: ${message}\n`);
});

test('an audit that was changed exits with 1 and names the entry', async () => {
  await world.run(['keys', 'create', 'a']);
  await world.run(['keys', 'create', 'b']);
  expect(await world.run(['audit', 'verify'])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^2 entries, intact\. Last hash: [0-9a-f]{64}\n$/),
  });
  const file = new Database(join(world.home, '.hopgate', 'state', 'keys.db'));
  file.run('DROP TRIGGER audit_no_update');
  file.run("UPDATE audit SET actor = 'local:other' WHERE seq = 1");
  file.close();
  const ran = await world.run(['audit', 'verify']);
  expect([ran.code, ran.err]).toEqual([1, expect.stringContaining('entry 1 was changed')]);
});
