/** The newer of two statements about the same thing comes first, and the older one is there, too. */

import { describe, expect, test } from 'bun:test';
import { CHANGED } from './changed-facts.ts';
import { EVENTS } from './recall-set.ts';
import { FORMS, inList, memories } from './support.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const DAY = 86_400_000;

describe.each(FORMS)('changed facts, %s', (form) => {
  const files = memories(form);

  test.each([40, 400])(
    'of twenty, %d days apart, the newer statement is first in seventeen',
    async (days) => {
      const { book, memory } = files.open({ path: files.path(), now: () => NOW });
      const around = EVENTS.slice(0, 60).map(([source, text], at) => ({
        source,
        text,
        time: NOW - (500 + at) * DAY,
      }));
      let first = 0;
      let both = 0;
      for (const [at, [before, after, question]] of CHANGED.entries()) {
        const said = (text: string, ago: number) => ({
          text,
          source: 'user',
          time: NOW - ago * DAY,
        });
        await book.add(`s${at}`, [...around, said(before, days + 3), said(after, 3)], inList);
        const found = (await memory.recall(`s${at}`, { query: question, limit: 8 })).map(
          ({ text }) => text,
        );
        const places = [found.indexOf(before), found.indexOf(after)] as const;
        if (places[1] >= 0 && (places[0] < 0 || places[1] < places[0])) first++;
        if (Math.min(...places) >= 0) both++;
      }
      expect(first).toBeGreaterThanOrEqual(17);
      expect(both).toBeGreaterThanOrEqual(19);
    },
    60_000,
  );

  test('what is asked of a named time is not replaced by what came later', async () => {
    const { book, recalled } = files.open({ path: files.path(), now: () => NOW });
    const said = (text: string, time: string) => ({ text, source: 'user', time: Date.parse(time) });
    await book.add(
      's',
      [said('I live in Hamburg.', '2025-05-03'), said('I moved to Munich.', '2026-11-01')],
      inList,
    );
    expect((await recalled('s', 'Where do I live?'))[0]).toBe('I moved to Munich.');
    expect((await recalled('s', 'Where did I live in May 2025?'))[0]).toBe('I live in Hamburg.');
  });
});
