/** The compiled program meets state files of a newer version: it names and refuses each, and goes on serving. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONFIG_VERSION } from '../../src/config/file/migrations.ts';
import { runBinary, startGateway } from '../support/binary.ts';
import { until } from '../support/until.ts';

// Rebuilt from the samples beside it, so its content does not matter.
const DERIVED = /samples\/.*\.db$/;
const FUTURE = 99;

const home = mkdtempSync(join(tmpdir(), 'hopgate-upgrade-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const env = { HOPGATE_HOME: home };
const CONFIG = {
  samples: { mode: 'all', dir: join(home, 'samples') },
  memory: { path: join(home, 'memory.db') },
  log: { format: 'json' },
};
const databases = () =>
  [...new Bun.Glob('**/*.db').scanSync({ cwd: home })].map((name) => join(home, name)).sort();
const withDatabase = <T>(path: string, use: (db: Database) => T): T => {
  const db = new Database(path, { readwrite: true });
  try {
    return use(db);
  } finally {
    db.close();
  }
};
const versionOf = (path: string) =>
  withDatabase(path, (db) => db.query('PRAGMA user_version').get()) as { user_version: number };
const sum = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');

async function ask(url: string): Promise<number> {
  const response = await fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', input: 'Say hello.', store: true }),
  });
  await response.arrayBuffer();
  return response.status;
}

describe('state files', () => {
  beforeAll(async () => {
    const gateway = await startGateway(CONFIG, { env });
    expect(await ask(gateway.url)).toBe(200);
    // Files that the request does not need are opened shortly after the start.
    await until(() => databases().length >= 6);
    expect(await gateway.stop()).toBe(0);
  }, 120_000);

  test('every kind of state file carries a version', () => {
    const names = databases().map((path) => path.slice(home.length + 1));
    for (const name of ['responses', 'hops', 'session', 'sent-short', 'descriptions']) {
      expect(names).toContain(`state/${name}.db`);
    }
    for (const path of databases()) expect(versionOf(path).user_version).toBeGreaterThan(0);
  });

  test('a file of a newer version is named, left unchanged, and not used', async () => {
    for (const path of databases()) {
      withDatabase(path, (db) => {
        db.run(`PRAGMA user_version = ${FUTURE}`);
        db.run('PRAGMA wal_checkpoint(TRUNCATE)');
      });
    }
    const stored = databases().filter((path) => !DERIVED.test(path));
    const before = stored.map(sum);
    const gateway = await startGateway(CONFIG, { env });
    expect(await ask(gateway.url)).toBe(200);
    const messages = () => gateway.logs().map(({ message }) => String(message));
    const named = (path: string) => messages().some((one) => one.includes(path));
    await until(
      () => stored.every(named),
      () => messages().join('\n'),
    );
    const texts = messages();
    expect(await gateway.stop()).toBe(0);
    for (const path of stored) {
      const messages = texts.filter((one) => one.includes(path));
      expect([path, messages]).toEqual([
        path,
        [expect.stringContaining(`made by a newer version of hopgate (schema ${FUTURE}, this one`)],
      ]);
    }
    expect(stored.map(sum)).toEqual(before);
    expect([...new Bun.Glob('**/*.backup').scanSync({ cwd: home })]).toEqual([]);
    for (const path of databases().filter((one) => DERIVED.test(one))) {
      expect(versionOf(path).user_version).toBeLessThan(FUTURE);
    }
  }, 60_000);
});

test('a configuration of a newer version stops the start with its position, and stays unchanged', async () => {
  const file = join(home, 'newer.yaml');
  const text = `listen: 127.0.0.1:0\nversion: ${CONFIG_VERSION + 1}\n`;
  await Bun.write(file, text);
  for (const command of ['serve', 'check', 'migrate']) {
    const { code, stderr } = await runBinary([command, '--config', file]);
    expect([command, code]).toEqual([command, 1]);
    expect(stderr).toContain(`${file}:2:10: version: this file is written for a newer hopgate`);
  }
  expect(readFileSync(file, 'utf8')).toBe(text);
}, 60_000);
