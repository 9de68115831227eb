/** New connections on a shared port go to the socket they are directed to. */

import { afterEach, describe, expect, test } from 'bun:test';
import { directConnections, spreadConnections } from '../../../src/server/process/port.ts';

const linux = process.platform === 'linux';

const servers: Bun.Server<undefined>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.stop(true);
});

/** Servers of one port in the order in which they began to listen; each answers with its index. */
function listenTogether(count: number): number {
  for (let place = 0; place < count; place++) {
    const fetch = () => new Response(String(place));
    const port = servers[0]?.port ?? 0;
    servers.push(Bun.serve({ hostname: '127.0.0.1', port, reusePort: true, fetch }));
  }
  return servers[0]!.port!;
}

async function answering(port: number): Promise<string[]> {
  const found = new Set<string>();
  for (let i = 0; i < 64; i++) {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { keepalive: false });
    found.add(await answer.text());
  }
  return [...found].sort();
}

describe.skipIf(!linux)(
  `a shared port${linux ? '' : ' [SKIPPED: needs a shared port of Linux]'}`,
  () => {
    test('every new connection goes to the chosen socket until connections are spread again', async () => {
      const port = listenTogether(3);
      expect(await answering(port)).toEqual(['0', '1', '2']);
      expect(directConnections(port, 1)).toBe(true);
      expect(await answering(port)).toEqual(['1']);
      expect(directConnections(port, 2)).toBe(true);
      expect(await answering(port)).toEqual(['2']);
      expect(spreadConnections(port)).toBe(true);
      expect(await answering(port)).toEqual(['0', '1', '2']);
    });

    test('an index without a socket costs no connection', async () => {
      const port = listenTogether(2);
      expect(directConnections(port, 7)).toBe(true);
      expect(await answering(port)).toEqual(['0', '1']);
    });

    test.each([
      [1, 1],
      [2, 2],
      [3, 3],
      [2, 3],
    ])(
      'while %i old sockets close, connections go to the first of %i new ones, then to any new one',
      async (old, young) => {
        const port = listenTogether(old + young);
        expect(directConnections(port, old)).toBe(true);
        for (let closed = 0; closed < old; closed++) {
          expect(await answering(port)).toEqual([String(old)]);
          await servers[closed]!.stop();
        }
        for (const place of await answering(port))
          expect(Number(place)).toBeGreaterThanOrEqual(old);
      },
    );

    test('a port with one socket, or with none of this process, is left alone', () => {
      const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() });
      servers.push(server);
      expect(directConnections(server.port!, 0)).toBe(false);
      expect(spreadConnections(server.port!)).toBe(false);
      expect(directConnections(1, 0)).toBe(false);
    });
  },
);
