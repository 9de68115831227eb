/** Memories for tests: each has a fresh file and records what its observer reports. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MemoryObserver } from '../../../src/features/memory/backend.ts';
import { DEFAULT_LIMITS } from '../../../src/features/memory/event.ts';
import {
  type EmbeddedOptions,
  embeddedMemory,
} from '../../../src/features/memory/store/embedded-memory.ts';

export interface Watched extends MemoryObserver {
  readonly outcomes: Record<string, number>;
  readonly kinds: string[];
  readonly problems: string[];
  readonly failures: string[];
}

export function watched(): Watched {
  const outcomes: Record<string, number> = {};
  const kinds: string[] = [];
  const problems: string[] = [];
  const failures: string[] = [];
  return {
    outcomes,
    kinds,
    problems,
    failures,
    captured: (outcome, count) => {
      if (count > 0) outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
    },
    recalled: (kind) => void kinds.push(kind),
    problem: (message) => void problems.push(message),
    embeddingsFailed: (message) => void failures.push(message),
  };
}

/** The names of events in a list, or of one event. */
export const inList = (place: number) => `events[${place}]`;
export const alone = () => '';

/** Files and memories that are removed after the test: call `clean` from afterEach. */
export function memories() {
  const folders: string[] = [];
  const open: { close(): Promise<void> }[] = [];
  return {
    path() {
      const folder = mkdtempSync(join(tmpdir(), 'hopgate-memory-'));
      folders.push(folder);
      return join(folder, 'state', 'memory.db');
    },
    open(options: Partial<EmbeddedOptions> & { path: string }) {
      const watch = (options.observer as Watched | undefined) ?? watched();
      const memory = embeddedMemory({
        limits: DEFAULT_LIMITS,
        dedupeMs: 86_400_000,
        ...options,
        observer: watch,
      });
      open.push(memory);
      return {
        memory,
        watch,
        book: memory.eventStore!,
        texts: (space: string) =>
          memory
            .eventStore!.list(space, { limit: 1000, order: 'asc' })
            .events.map(({ text }) => text),
        recalled: async (space: string, query: string, limit?: number) =>
          (await memory.recall(space, { query, limit })).map(({ text }) => text),
      };
    },
    async clean() {
      for (const one of open.splice(0)) await one.close();
      for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
    },
  };
}
