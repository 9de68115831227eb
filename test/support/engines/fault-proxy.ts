/** A TCP proxy that delays, swallows or cuts what passes through it. */

import { connect, createServer, type Socket } from 'node:net';

export interface FaultProxy {
  readonly port: number;
  /** Milliseconds by which each piece is delayed, both ways. */
  delayMs: number;
  /** Connections stay open, and nothing passes until this is false again, as on a line that is broken for a while. */
  silent: boolean;
  /** Nothing passes of what the server answers; the connection is of no use after that, so cut it then. */
  loseAnswers: boolean;
  /** Resets all connections. */
  cut(): void;
  close(): void;
}

/** @param at the port; left out: a free one */
export async function startFaultProxy(target: number, at = 0): Promise<FaultProxy> {
  const sockets = new Set<Socket>();
  let silent = false;
  const server = createServer((client) => {
    const upstream = connect({ host: '127.0.0.1', port: target });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      if (silent) from.pause();
      from.on('data', (bytes) => {
        if (proxy.loseAnswers && from === upstream) return;
        if (proxy.delayMs === 0) to.write(bytes);
        else setTimeout(() => to.write(bytes), proxy.delayMs);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const proxy: FaultProxy = {
    port,
    delayMs: 0,
    get silent() {
      return silent;
    },
    set silent(value) {
      silent = value;
      for (const socket of sockets) {
        if (value) socket.pause();
        else socket.resume();
      }
    },
    loseAnswers: false,
    cut() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
  return proxy;
}
