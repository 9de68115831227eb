/** A small memory for tests: it returns every event of a space that shares a word (or two characters) with the query. */

import type {
  Memory,
  MemoryEvent,
  NewMemoryEvent,
  RecallQuery,
} from '../../../src/conversation/memory.ts';

export interface TestMemory extends Memory {
  readonly captured: { readonly space: string; readonly events: readonly NewMemoryEvent[] }[];
  readonly forgotten: { readonly space: string; readonly ids: readonly string[] }[];
  readonly recalls: { readonly space: string; readonly query: RecallQuery }[];
}

const pairs = (text: string): readonly string[] =>
  [...text.toLowerCase()].slice(1).map((_, at) => text.toLowerCase().slice(at, at + 2));

export function testMemory(spaces: Readonly<Record<string, readonly string[]>> = {}): TestMemory {
  const captured: TestMemory['captured'] = [];
  const forgotten: TestMemory['forgotten'] = [];
  const requests: TestMemory['recalls'] = [];
  return {
    captured,
    forgotten,
    recalls: requests,
    async recall(space, query) {
      requests.push({ space, query });
      const texts = spaces[space] ?? [];
      const events = texts.map(
        (text, at): MemoryEvent => ({
          id: `mem_${at}`,
          time: Date.UTC(2026, 0, at + 1),
          text,
          tags: [],
          importance: 0.5,
        }),
      );
      return events
        .map((event) => ({
          ...event,
          score: pairs(query.query).filter((pair) => event.text.toLowerCase().includes(pair))
            .length,
        }))
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score)
        .slice(0, query.limit ?? 8);
    },
    async capture(space, events) {
      captured.push({ space, events });
    },
    async forget(space, ids) {
      forgotten.push({ space, ids });
      return ids.length;
    },
  };
}
