/** Commands on a machine whose gateway uses another home: keys that no gateway reads are not made, reports say whose they are. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { homeMark } from '../../../src/lib/process/running.ts';
import { createWorld, type World } from '../world.ts';

let world: World;
let theirs: string | undefined;
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: () => Response.json({ status: 'ok', ...(theirs === undefined ? {} : { home: theirs }) }),
});
beforeEach(() => {
  world = createWorld();
  world.fetch = fetch;
  mkdirSync(join(world.home, '.hopgate'));
  world.write(
    '.config/hopgate/hopgate.yaml',
    `listen: 127.0.0.1:${server.port}\nproviders: { p: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", models: [m], keys: ["\${NO_SUCH_KEY}"] } }\n`,
  );
});
afterEach(() => world.remove());

const other = () => {
  mkdirSync(join(world.home, 'elsewhere'));
  return homeMark(join(world.home, 'elsewhere'));
};

function lackAdminKey(): void {
  const file = join(world.home, '.config/hopgate/hopgate.yaml');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, `${text}auth: { admin_keys: ["\${NO_SUCH_ADMIN_KEY}"] }\n`);
}

describe('a gateway with another home', () => {
  for (const line of ['keys create ci', 'keys list', 'audit verify']) {
    test(`${line} refuses, and says what to do`, async () => {
      theirs = other();
      const { code, out, err } = await world.run(line.split(' '));
      expect([code, out]).toEqual([1, '']);
      expect(err).toContain(`http://127.0.0.1:${server.port} does not use ${world.home}/.hopgate`);
      expect(err).toContain('HOPGATE_HOME');
    });
  }

  describe.each(['usage', 'samples'])('%s', (line) => {
    test('says whose they are', async () => {
      theirs = other();
      expect((await world.run([line])).err).toContain('does not use');
    });

    test('says so, too, where this shell lacks the admin key', async () => {
      theirs = other();
      lackAdminKey();
      expect((await world.run([line])).err).toContain('does not use');
    });
  });
});

test.each([
  ['the same home', () => homeMark(join(world.home, '.hopgate'))],
  ['a gateway that says nothing of its home', () => undefined],
])('%s is no reason to refuse', async (_, mark) => {
  theirs = mark();
  const { code, err } = await world.run(['keys', 'create', 'ci']);
  expect([code, err]).toEqual([0, expect.not.stringContaining('does not use')]);
});

for (const line of ['status', 'models', 'keys list', 'setup claude --print']) {
  test(`${line} does not complain that this shell lacks a key which the gateway may have`, async () => {
    theirs = undefined;
    expect((await world.run(line.split(' '))).err).not.toContain('NO_SUCH_KEY');
  });
}

test.each(['check', 'doctor'])('%s does', async (line) => {
  const { out, err } = await world.run([line]);
  expect(out + err).toContain('NO_SUCH_KEY');
});

test('status asks the gateway where this shell lacks the admin key, too', async () => {
  lackAdminKey();
  expect((await world.run(['status'])).err).toContain('another program answers');
});
