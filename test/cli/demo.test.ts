/** `hopgate demo`: whoever sits at the terminal may join in, and ends it with an empty line. */

import { expect, test } from 'bun:test';
import { createWorld } from './world.ts';

test('what somebody types is a round like the others, and is remembered, too', async () => {
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
