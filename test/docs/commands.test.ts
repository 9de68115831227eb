/** Every command that the manual shows runs, against the demo and in a home of its own; those that cannot are listed. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanEnv } from '../support/binary.ts';
import { FILES, fences, ROOT } from './files.ts';

/** Lines that are not run here, each with its reason. A line that no page shows any more fails the test. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm install && npm start': 'installs packages and does not end',
  'npm test': 'is this very run',
  'npm run build': 'the tests of the executable build it',
  'hopgate serve': 'does not end; the other commands ask the server that this test starts with it',
  'hopgate setup claude': 'asks a person; its tests answer',
  'ANTHROPIC_BASE_URL=http://127.0.0.1:5520 ANTHROPIC_AUTH_TOKEN=hopgate claude':
    'needs Claude Code; scripts/agents.ts runs it',
};

const lines = FILES.flatMap(({ path, text }) =>
  fences(text, 'sh').flatMap((block) =>
    block
      .split('\n')
      .map((line) => line.replace(/\s+#.*$/, '').trim())
      .filter((line) => line !== '')
      .map((line) => ({ path, line })),
  ),
);
const isRun = ({ line }: { line: string }) => !Object.hasOwn(NOT_RUN, line);

const home = mkdtempSync(join(tmpdir(), 'hopgate-manual-'));
const env = { ...cleanEnv(home), PATH: `${home}/bin:${process.env.PATH ?? ''}`, NO_COLOR: '1' };
let server: Bun.Subprocess<'ignore', 'pipe', 'ignore'> | undefined;
let port = '';

beforeAll(async () => {
  await mkdir(join(home, 'bin'));
  const program = join(home, 'bin/hopgate');
  await Bun.write(program, `#!/bin/sh\nexec '${process.execPath}' '${ROOT}/src/main.ts' "$@"\n`);
  await chmod(program, 0o755);
  server = Bun.spawn([program, 'serve', '--port', '0'], {
    cwd: home,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  });
  const reader = server.stdout.getReader();
  let said = '';
  while (port === '') {
    const { value, done } = await reader.read();
    if (done) throw new Error('The server did not start.');
    said += new TextDecoder().decode(value);
    port = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1] ?? '';
  }
}, 30_000);

afterAll(async () => {
  server?.kill('SIGTERM');
  await server?.exited;
  rmSync(home, { recursive: true, force: true });
});

describe('commands of the manual', () => {
  test('what is not run is still shown somewhere', () => {
    const shown = new Set(lines.map(({ line }) => line));
    expect(Object.keys(NOT_RUN).filter((line) => !shown.has(line))).toEqual([]);
  });

  test('there are some to run', () => {
    expect(lines.filter(isRun).length).toBeGreaterThan(8);
  });

  test.each(lines.filter(isRun))(
    '$path: $line',
    async ({ line }) => {
      const child = Bun.spawn(['sh', '-c', line.replaceAll('5520', port)], {
        cwd: home,
        env,
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      });
      const [stdout, stderr, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      expect({ code, stderr: code === 0 ? '' : stderr + stdout }).toEqual({ code: 0, stderr: '' });
      expect((stdout + stderr).trim()).not.toBe('');
      // Responses says `error: null` when there is none.
      if (line.startsWith('curl')) expect(JSON.parse(stdout).error ?? null).toBeNull();
    },
    30_000,
  );
});
