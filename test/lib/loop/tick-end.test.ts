/** What is put off to the end of a turn of the event loop, and when it is done. */

import { expect, test } from 'bun:test';
import { atTickEnd, type TickTask, tickEnd } from '../../../src/lib/loop/tick-end.ts';

const note = (list: string[], name: string): TickTask => ({ onTickEnd: () => list.push(name) });
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('nothing is done before the turn is over, then everything in order and once', async () => {
  const done: string[] = [];
  atTickEnd(note(done, 'first'));
  atTickEnd(note(done, 'second'));
  await Promise.resolve();
  expect(done).toEqual([]);
  await turn();
  expect(done).toEqual(['first', 'second']);
  await turn();
  expect(done).toEqual(['first', 'second']);
});

test('what is put off meanwhile is done at the end of the next turn, not lost and not looped over', async () => {
  const done: string[] = [];
  atTickEnd({
    onTickEnd() {
      done.push('outer');
      atTickEnd(note(done, 'inner'));
    },
  });
  await turn();
  expect(done).toEqual(['outer']);
  await turn();
  expect(done).toEqual(['outer', 'inner']);
});

test('all who wait for the end of a turn go on in step, and what they put off then is not a turn late', async () => {
  const done: string[] = [];
  const one = async (name: string) => {
    await tickEnd();
    done.push(`${name} goes on`);
    atTickEnd(note(done, `${name} put off`));
    await Promise.resolve();
    done.push(`${name} further`);
  };
  const both = [one('a'), one('b')];
  expect(done).toEqual([]);
  await turn();
  await Promise.all(both);
  expect(done).toEqual([
    'a goes on',
    'b goes on',
    'a put off',
    'b put off',
    'a further',
    'b further',
  ]);
  // The next turn has an end of its own.
  await one('c');
  expect(done.slice(6)).toEqual(['c goes on', 'c put off', 'c further']);
});

test('a task that is pending when the process exits has its `onExit` called', async () => {
  const path = JSON.stringify(
    new URL('../../../src/lib/loop/tick-end.ts', import.meta.url).pathname,
  );
  const script = `import { atTickEnd } from ${path};
    const loud = { onTickEnd() {}, onExit: () => console.log('told') };
    atTickEnd(loud); atTickEnd({ onTickEnd() {} }); process.exit(0);`;
  const { stdout } = Bun.spawnSync([process.execPath, '-e', script]);
  expect(stdout.toString()).toBe('told\n');
});

test('all callbacks of one turn of the loop run before the work begins', async () => {
  const order: string[] = [];
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data() {
        order.push('came');
        atTickEnd(note(order, 'done'));
      },
    },
  });
  const clients = await Promise.all(
    Array.from({ length: 4 }, () =>
      Bun.connect({ hostname: '127.0.0.1', port: server.port, socket: { data() {} } }),
    ),
  );
  await Bun.sleep(20);
  for (const client of clients) client.write('x');
  // Lets all of it arrive before the loop looks.
  Bun.sleepSync(20);
  await Bun.sleep(50);
  server.stop(true);
  expect(order).toEqual([...Array(4).fill('came'), ...Array(4).fill('done')]);
});
