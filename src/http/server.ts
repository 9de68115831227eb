/** Listens, tells the world that it does, and stops in good order. */

import type { Elysia } from 'elysia';

export interface ServerOptions {
  readonly app: Pick<Elysia, 'listen' | 'stop' | 'server'>;
  readonly host: string;
  readonly port: number;
  /** Several processes share the port. */
  readonly reusePort: boolean;
  readonly drainMs: number;
}

export interface RunningServer {
  /** `http://127.0.0.1:5520` */
  readonly url: string;
  readonly port: number;
  /**
   * Takes no new connections and waits for open streams, at most the drain time; a second call ends
   * at once.
   */
  stop(): Promise<void>;
}

/** @throws with a sentence for a person when the address cannot be had */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { app, host, port } = options;
  try {
    app.listen({ hostname: host, port, reusePort: options.reusePort });
  } catch (thrown) {
    const code = (thrown as { code?: unknown }).code;
    throw new Error(
      code === 'EADDRINUSE'
        ? `Port ${port} on ${host} is taken; is hopgate already running? Choose another with --port.`
        : `Cannot listen on ${host}:${port}: ${thrown instanceof Error ? thrown.message : thrown}`,
      { cause: thrown },
    );
  }
  const server = app.server;
  if (server === null) throw new Error(`Cannot listen on ${host}:${port}.`);
  const bound = server.port ?? port;
  let stopping = false;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    async stop() {
      if (stopping) {
        await server.stop(true);
        return;
      }
      stopping = true;
      const late = Bun.sleep(options.drainMs).then(() => server.stop(true));
      await Promise.race([server.stop(false), late]);
    },
  };
}
