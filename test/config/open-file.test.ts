/** A configuration file with a key that other users can read: `hopgate check` and `doctor` say so, and never show the key. */

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { createWorld, type World } from '../cli/world.ts';

const KEY = 'sk-plain-0123456789abcdef';
const WORDS = 'holds a key in plain text';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

/** What `check` says of a file with these keys and this mode. */
async function said(keys: string, mode: number, variables = {}): Promise<string> {
  Object.assign(world.variables, variables);
  const file = world.write(
    'hopgate.yaml',
    `providers: { p: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", models: [m], keys: ["${keys}"] } }\n`,
  );
  chmodSync(file, mode);
  const { code, out, err } = await world.run(['check', '-c', file]);
  expect(code).toBe(0);
  expect(out + err).not.toContain(KEY);
  return out + err;
}

test.each([0o644, 0o604, 0o620])('mode %o: a key in plain text is warned of', async (mode) => {
  const words = await said(KEY, mode);
  expect(words).toContain(`hopgate.yaml: ${WORDS}`);
  expect(words).toContain('chmod 600');
});

test('a pipe, which can be read once, is not read again', async () => {
  const { folder, text } = {
    folder: world.home,
    text: `providers: { glm: { keys: ["${KEY}"] } }\n`,
  };
  const pipe = join(folder, 'pipe.yaml');
  expect(Bun.spawnSync(['mkfifo', '-m', '644', pipe]).exitCode).toBe(0);
  const writer = Bun.spawn(['sh', '-c', 'cat > "$0"', pipe], { stdin: Buffer.from(text) });
  const { code, out, err } = await world.run(['check', '-c', pipe]);
  await writer.exited;
  expect([code, `${out}${err}`.includes(WORDS)]).toEqual([0, false]);
});

test('a private file may hold its keys', async () => {
  expect(await said(KEY, 0o600)).not.toContain(WORDS);
});

test('a reference is no key', async () => {
  expect(await said('${PLAIN_KEY}', 0o644, { PLAIN_KEY: KEY })).not.toContain(WORDS);
});

test('doctor says it, too', async () => {
  const file = world.write(
    'hopgate.yaml',
    `listen: 127.0.0.1:0\nproviders: { p: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", models: [m], keys: ["${KEY}"] } }\n`,
  );
  chmodSync(file, 0o644);
  const { out } = await world.run(['doctor', '-c', file, '--no-completion', '--json']);
  const { findings } = JSON.parse(out) as { findings: { status: string; message: string }[] };
  expect(JSON.stringify(findings.filter(({ status }) => status === 'warn'))).toContain(WORDS);
  expect(out).not.toContain(KEY);
});

test.each([
  ['headers: { x-team: backend-team }', false],
  ['query: { version: "2026-01-01" }', false],
  ['proxy: "http://proxy.example:3128"', false],
  ['headers: { x-api-key: abcdefgh-secret }', true],
  ['query: { sig: abcdefgh-secret }', true],
  ['proxy: "http://me:password@proxy.example:3128"', true],
])('%s: warned of: %p', async (more, isWarned) => {
  const file = world.write(
    'hopgate.yaml',
    `providers:\n  p: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", models: [m], ${more} }\n`,
  );
  chmodSync(file, 0o644);
  const { out, err } = await world.run(['check', '-c', file]);
  expect((out + err).includes(`${WORDS} (line 2)`)).toBe(isWarned);
});
