/** Two numbers that must not grow unnoticed: the size of the executable and how long it takes to answer. */

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Mebibytes, and milliseconds from the start to the first answer (the median of several). */
export interface Measured {
  readonly size: number;
  readonly start: number;
}

/** @throws Error when the program does not come up */
export async function measure(binary: string, times = 5): Promise<Measured> {
  const home = mkdtempSync(join(tmpdir(), 'hopgate-measure-'));
  const took: number[] = [];
  try {
    for (let i = 0; i < times; i++) took.push(await once(binary, home));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  took.sort((a, b) => a - b);
  return { size: statSync(binary).size / 1024 / 1024, start: took[Math.floor(times / 2)]! };
}

async function once(binary: string, home: string): Promise<number> {
  const begun = performance.now();
  const child = Bun.spawn([binary, 'serve', '--port', '0'], {
    env: { HOME: home },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  });
  try {
    let said = '';
    for await (const chunk of child.stdout) {
      said += new TextDecoder().decode(chunk);
      const url = /listening on (\S+)/.exec(said)?.[1];
      if (url === undefined) continue;
      await (await fetch(`${url}/healthz`)).text();
      return performance.now() - begun;
    }
    throw new Error(`${binary} ended before it listened`);
  } finally {
    child.kill('SIGTERM');
    await child.exited;
  }
}
