/** The version of a configuration file: older ones are brought up to date, newer ones are refused. */

import { describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configText } from '../../src/cli/commands/init/config-text.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { readYaml } from '../../src/config/file/document.ts';
import {
  CONFIG_MIGRATIONS,
  CONFIG_VERSION,
  type ConfigMigration,
} from '../../src/config/file/migrations.ts';
import { describeProblem } from '../../src/config/file/problem.ts';
import { loadConfig, parseConfig } from '../../src/config/load.ts';
import { liveConfig } from '../../src/config/reload.ts';
import { STEPS } from './older-forms.ts';

const environment = environmentFrom({}, '/home/nobody');
const parse = (text: string, migrations?: readonly ConfigMigration[]) =>
  parseConfig(text, '/hopgate.yaml', environment, migrations);

describe('a file of this version', () => {
  test('is read with or without its version, without a warning', () => {
    for (const text of [`version: ${CONFIG_VERSION}\n`, 'listen: 1\n']) {
      expect(parse(text)).toMatchObject({ ok: true, warnings: [] });
    }
  });

  test('is what init writes, with its version', () => {
    const text = configText({ listen: '127.0.0.1:1', providers: [], categories: {} });
    expect(readYaml(text).value).toMatchObject({ version: CONFIG_VERSION });
    expect(CONFIG_VERSION).toBe(CONFIG_MIGRATIONS.length + 1);
  });
});

describe('a newer file', () => {
  test('is refused with one problem at its position, whatever else it contains', () => {
    const result = parse(`# a comment\nversion: ${CONFIG_VERSION + 1}\nlanes: [what is this?]\n`);
    if (result.ok) throw new Error('it was taken');
    expect(result.problems.map((one) => describeProblem(one, 'hopgate.yaml'))).toEqual([
      `hopgate.yaml:2:10: version: this file is written for a newer hopgate (version ${CONFIG_VERSION + 1}, this one reads ${CONFIG_VERSION}): use that one, or bring the file back`,
    ]);
  });

  test('that replaces the file of a running server leaves the old configuration in force', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hopgate-version-'));
    const file = join(folder, 'hopgate.yaml');
    await Bun.write(file, 'version: 1\nlisten: 127.0.0.1:5521\n');
    const loaded = await loadConfig({ path: file, environment });
    if (!loaded.ok) throw new Error('it was not taken');
    const live = liveConfig(loaded.config, { path: file, environment });
    await Bun.write(file, `version: ${CONFIG_VERSION + 1}\n`);
    expect(await live.reload()).toMatchObject({ ok: false, problems: [{ path: 'version' }] });
    expect(live.current.listen.port).toBe(5521);
    rmSync(folder, { recursive: true });
  });
});

describe('an older file', () => {
  const OLD = `# mine

address: 127.0.0.1:5521 # not the usual port

# in milliseconds
keep_alive: 3000
`;

  test('is brought up to date through every step, with a warning', () => {
    const result = parse(OLD, STEPS);
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    expect(result.config.listen.port).toBe(5521);
    expect(result.config.keepAliveMs).toBe(3000);
    expect(result.warnings).toEqual([
      {
        path: 'version',
        line: 3,
        column: 1,
        message:
          'this file has the form of version 1 and is read as version 3 ("address" is called "listen"; keep_alive is in seconds): "hopgate migrate" brings it up to date and keeps a copy',
      },
    ]);
  });

  test('that names its version gets only the remaining steps', () => {
    const result = parse('version: 2\nlisten: 127.0.0.1:5521\nkeep_alive: 3000\n', STEPS);
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    expect(result.config.keepAliveMs).toBe(3000);
    expect(result.warnings[0]!.message).toContain('read as version 3 (keep_alive is in seconds)');
    const address = parse('version: 2\naddress: 127.0.0.1:5521\n', STEPS);
    expect(address).toMatchObject({ ok: false, problems: [{ path: 'address', line: 2 }] });
  });

  test('keeps the positions of its own text in problems', () => {
    const result = parse(`${OLD}lanes: 1\n`, STEPS);
    if (result.ok) throw new Error('it was taken');
    expect(result.problems).toMatchObject([{ path: 'lanes', line: 7, column: 1 }]);
    const wrong = parse('# one\n# two\naddress: "no port here:x"\n', STEPS);
    expect(wrong).toMatchObject({ ok: false, problems: [{ path: 'listen', line: 3, column: 10 }] });
  });

  test('becomes a text of the newest version with its comments, which needs no further step', () => {
    const today = readYaml(OLD, STEPS).text();
    expect(today).toBe(`# mine

version: 3
listen: 127.0.0.1:5521 # not the usual port

# in milliseconds
keep_alive: 3
`);
    expect(parse(today, STEPS)).toMatchObject({ ok: true, warnings: [] });
  });

  test('whose version has no value counts as one without a version', () => {
    expect(readYaml('version:\naddress: 127.0.0.1:1\n', STEPS).value).toEqual({
      version: 3,
      listen: '127.0.0.1:1',
    });
  });

  test('with a long line or quotes of its own keeps them', () => {
    const long = `"${'x'.repeat(200)} y z"`;
    const text = readYaml(`address: '127.0.0.1:1'\naliases: { fast: ${long} }\n`, STEPS).text();
    expect(text).toBe(`version: 3\nlisten: '127.0.0.1:1'\naliases: { fast: ${long} }\n`);
  });
});

for (const wrong of ['0', '-1', '1.5', 'two', '[1]']) {
  test(`"version: ${wrong}" is no version`, () => {
    const result = parse(`version: ${wrong}\n`, STEPS);
    if (result.ok) throw new Error('it was taken');
    expect(result.problems[0]!.path).toBe('version');
  });
}
