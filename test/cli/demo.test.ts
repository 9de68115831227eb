/** `hopgate demo`: the user can join in, and ends it with an empty line. */

import { expect, test } from 'bun:test';
import { createWorld } from './world.ts';

test.each([
  ['en', ['Ada', 'Ben', 'Momo']],
  ['zh', ['小雨', '老陈', 'Momo']],
])(
  '%s: one line of tools for each turn, right before it, and no question is agreed with',
  async (lang, names) => {
    const world = createWorld();
    try {
      const { code, out } = await world.run(['demo', 'group-chat', '--lang', lang, '--script']);
      expect(code).toBe(0);
      const lines = out.split('\n');
      const spoken = lines.filter((line) => names.some((name) => line.startsWith(`${name}  `)));
      const tools = lines.filter((line) => line.startsWith('  ⚙ '));
      expect([spoken.length, tools.length]).toEqual([12, 12]);
      for (const line of tools) {
        expect(line).toContain('is_mentioned');
        expect(line).toContain('recall_memory');
        expect(spoken).toContain(lines[lines.indexOf(line, 0) + 1]!);
      }
      let question = false;
      for (const line of lines) {
        if (/^(You|你) {2}/.test(line)) question = /[?？]$/.test(line);
        if (question && !line.startsWith('  ⚙ '))
          expect(line).not.toMatch(/[Ss]ounds good|听起来不错|I am with|我同意/);
      }
    } finally {
      world.remove();
    }
  },
  60_000,
);

test('a typed line is a round like the others, and is remembered, too', async () => {
  const world = createWorld();
  try {
    const typed = '我养了一只叫雪球的鹦鹉\n@Momo 你还记得我养的雪球吗？\n\n';
    const { code, out, err } = await world.run(['demo', 'group-chat', '--lang', 'zh'], typed);
    expect(code).toBe(0);
    expect(err).toContain('你来说');
    const tail = out.slice(out.indexOf('雪球'));
    expect(tail).toMatch(/^Momo {2}.*你说过：“我养了一只叫雪球的鹦鹉”/m);
  } finally {
    world.remove();
  }
}, 60_000);
