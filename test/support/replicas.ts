/** Several replicas of the compiled binary behind a load balancer that sends each request to the next one. */

import { startCache } from './engines/cache-servers.ts';
import { type Gateway, type GatewayOptions, startOneGateway } from './gateway-process.ts';

export interface Replicas {
  /** Of the load balancer. */
  readonly url: string;
  readonly gateways: readonly Gateway[];
  /** Requests that each one got. */
  readonly served: readonly number[];
  /** Log lines of all of them. */
  logs(): Record<string, unknown>[];
  /** Requests go to no other one from now on; undefined: to each in turn. */
  only(gateway: number | undefined): void;
  stop(): Promise<void>;
}

/** @param config with the engines that they share */
export async function startReplicas(
  config: unknown,
  count = 3,
  options: GatewayOptions = { patience: 60_000 },
): Promise<Replicas> {
  const gateways = await Promise.all(
    Array.from({ length: count }, () => startOneGateway(config, options)),
  );
  const served = gateways.map(() => 0);
  let next = 0;
  let chosen: number | undefined;
  const balancer = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      const at = chosen ?? next++ % count;
      served[at]!++;
      const { pathname, search } = new URL(request.url);
      return forward(request, `${gateways[at]!.url}${pathname}${search}`);
    },
  });
  return {
    url: `http://127.0.0.1:${balancer.port}`,
    gateways,
    served,
    logs: () => gateways.flatMap((one) => one.logs()),
    only(gateway) {
      chosen = gateway;
    },
    async stop() {
      await balancer.stop(true);
      await Promise.all(gateways.map((one) => one.stop()));
    },
  };
}

/** The answer as it comes: a connection that is cut there is cut here. */
function forward(request: Request, url: string): Promise<Response> {
  const { method, signal } = request;
  const headers = new Headers(request.headers);
  headers.delete('host');
  headers.set('connection', 'close');
  const body = request.body === null ? {} : { body: request.body };
  return fetch(url, { method, headers, signal, decompress: false, redirect: 'manual', ...body });
}

/** Replicas on a cache of their own, as if they were one gateway. */
export async function startAsOne(
  config: unknown,
  count: number,
  options: GatewayOptions,
): Promise<Gateway> {
  if (typeof config !== 'object') throw new Error('a configuration of replicas is no text');
  const cache = await startCache();
  const engines = { cache: `redis://127.0.0.1:${cache.port}` };
  const replicas = await startReplicas({ ...config, engines }, count, {
    ...options,
    patience: 60_000,
  });
  const { gateways, url } = replicas;
  const [first] = gateways;
  const all = (text: (gateway: Gateway) => string) => gateways.map(text).join('\n');
  const byTime = (a: Record<string, unknown>, b: Record<string, unknown>) =>
    String(a.time).localeCompare(String(b.time));
  return {
    ...first!,
    url,
    stdout: () => all((one) => one.stdout()),
    stderr: () => all((one) => one.stderr()),
    logs: () => replicas.logs().sort(byTime),
    signal(name) {
      for (const one of gateways) one.signal(name);
    },
    async stop() {
      await replicas.stop();
      await cache.stop();
      return first!.exited;
    },
  };
}
