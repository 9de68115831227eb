/** `hopgate state move` stopped with Ctrl-C, while it waits for an engine. */

import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MAIN = join(import.meta.dir, '../../../../src/main.ts');

test('it says what stays and how to go on, and ends as shells expect', async () => {
  const home = mkdtempSync(join(tmpdir(), 'hopgate-interrupted-'));
  const asked = Promise.withResolvers<void>();
  // A database that takes the connection and never answers.
  const frozen = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: () => asked.resolve() },
  });
  try {
    const config = join(home, 'hopgate.yaml');
    writeFileSync(
      config,
      JSON.stringify({ engines: { database: `postgres://u:p@127.0.0.1:${frozen.port}/d` } }),
    );
    const child = Bun.spawn(
      [process.execPath, MAIN, 'state', 'move', '--to', 'engines', '--config', config],
      { env: { ...process.env, HOPGATE_HOME: home }, stdout: 'pipe', stderr: 'pipe' },
    );
    await asked.promise;
    child.kill('SIGINT');
    expect(await child.exited).toBe(130);
    expect(await new Response(child.stderr).text()).toContain(
      'What was copied stays; run the same command again to continue.',
    );
  } finally {
    frozen.stop(true);
    rmSync(home, { recursive: true });
  }
});
