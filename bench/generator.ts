/** A handle on a load-generator process. */

import { type Child, lineReader, startChild } from './children.ts';
import type { LoadPlan, LoadResult } from './load-plan.ts';

export interface Generator {
  readonly child: Child;
  run(plan: LoadPlan): Promise<LoadResult>;
}

/** Starts a load generator; runs on it follow one another. */
export function startGenerator(logFile: string): Generator {
  const script = new URL('./load-generator.ts', import.meta.url).pathname;
  const child = startChild([process.execPath, script], {
    role: 'load',
    logFile,
    stdin: 'pipe',
    stdout: 'pipe',
  });
  const nextLine = lineReader(child);
  return {
    child,
    async run(plan) {
      const stdin = child.process.stdin as import('bun').FileSink;
      stdin.write(`${JSON.stringify(plan)}\n`);
      stdin.flush();
      return JSON.parse(await nextLine(200_000)) as LoadResult;
    },
  };
}
