/** Several replicas of the compiled binary behind a load balancer that sends each request to the next one. */

import { type Gateway, type GatewayOptions, startGateway } from './binary.ts';

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
    Array.from({ length: count }, () => startGateway(config, options)),
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
