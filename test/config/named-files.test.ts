/** Files that a configuration is, or names: pipes, devices and folders in their place never stop a start. */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createWorld, type World } from '../cli/world.ts';

const PROVIDER = 'protocol: openai-chat, base_url: "https://127.0.0.1:1/v1", models: [m]';
const GOOD = `providers: { p: { ${PROVIDER}, keys: [k] } }\n`;

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

/** Makes something other than a text file, and returns its path. */
const KINDS: Readonly<Record<string, (path: string) => string>> = {
  'a pipe that nobody writes into': (path) => {
    expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0);
    return path;
  },
  'a folder': (path) => {
    mkdirSync(path);
    return path;
  },
  'a device without end': () => '/dev/zero',
  'a file of 3 GB': (path) => {
    writeFileSync(path, '');
    truncateSync(path, 3 * 2 ** 30);
    return path;
  },
};

const WORDS = /: is (?:a pipe or device that says nothing|a folder|larger than)/;
const FILE_WORDS = /the file \S+ is (?:a pipe or device that says nothing|a folder|larger than)/;

for (const [kind, make] of Object.entries(KINDS)) {
  test(`the configuration is ${kind}: an error that says so`, async () => {
    const { code, err } = await world.run(['check', '-c', make(join(world.home, 'other'))]);
    expect([code, err]).toEqual([1, expect.stringMatching(WORDS)]);
  });

  test.each([
    ['a key', (file: string) => `keys: ["$\{file:${file}}"]`],
    ['a certificate authority', (file: string) => `keys: [k], tls: { ca_file: ${file} }`],
    [
      "a client's certificate",
      (file: string) => `keys: [k], tls: { cert_file: ${file}, key_file: ${file} }`,
    ],
  ])(`%s is ${kind}: the check says so`, async (_, keys) => {
    const named = keys(make(join(world.home, 'other')));
    const file = world.write('hopgate.yaml', `providers: { p: { ${PROVIDER}, ${named} } }\n`);
    const { err } = await world.run(['check', '-c', file]);
    expect(err).toMatch(FILE_WORDS);
  });
}

test('a pipe whose writer begins late is read whole', async () => {
  const pipe = join(world.home, 'pipe');
  expect(Bun.spawnSync(['mkfifo', pipe]).exitCode).toBe(0);
  const script = 'exec 3>"$0"; sleep 0.2; head -c 20 >&3; sleep 0.2; cat >&3';
  const writer = Bun.spawn(['sh', '-c', script, pipe], { stdin: Buffer.from(GOOD) });
  const { code, out } = await world.run(['check', '-c', pipe]);
  await writer.exited;
  expect([code, out]).toEqual([0, expect.stringContaining('1 provider: p')]);
});

test.each([
  ['a byte order mark', `\uFEFF${GOOD}`],
  ["Windows' line ends", `\uFEFF${GOOD.replaceAll('\n', '\r\n')}`],
])('a file with %s is read', async (_, text) => {
  const { code, out } = await world.run(['check', '-c', world.write('hopgate.yaml', text)]);
  expect([code, out]).toEqual([0, expect.stringContaining('1 provider: p')]);
});

test('a file in UTF-16, as PowerShell writes it, is an error that names the encoding', async () => {
  const file = join(world.home, 'wide.yaml');
  writeFileSync(file, Buffer.from(`\uFEFF${GOOD}`, 'utf16le'));
  const { code, err } = await world.run(['check', '-c', file]);
  expect([code, err]).toEqual([1, expect.stringContaining('is not UTF-8')]);
});
