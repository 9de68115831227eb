/** The providers of one configuration at run time, each made when it is first asked for. */

import type { ProviderConfig, TransportConfig } from '../config/config.ts';
import { fetchTransport, type Transport } from './transport.ts';
import { Upstream } from './upstream.ts';

export interface PoolOptions {
  /** The transport for base URLs of another kind than http, by scheme (`demo:`). */
  readonly builtIn: Readonly<Record<string, () => Transport>>;
}

/** Looks providers up; a reload makes a new pool, and streams that are open keep their old one. */
export function upstreamPool(options: PoolOptions): (config: ProviderConfig) => Upstream {
  const known = new Map<string, Upstream>();
  return (config) => {
    const found = known.get(config.name);
    if (found !== undefined) return found;
    const scheme = config.baseUrl.slice(0, config.baseUrl.indexOf(':') + 1);
    const builtIn = options.builtIn[scheme];
    const upstream = new Upstream(config, builtIn?.() ?? network(config.transport));
    known.set(config.name, upstream);
    return upstream;
  };
}

function network({ proxy, http2, tls }: TransportConfig): Transport {
  const file = (path: string | undefined) => (path === undefined ? undefined : Bun.file(path));
  const plain =
    tls.verify &&
    tls.caFile === undefined &&
    tls.certFile === undefined &&
    tls.keyFile === undefined;
  return fetchTransport({
    proxy: proxy?.reveal(),
    http2,
    tls: plain
      ? undefined
      : {
          rejectUnauthorized: tls.verify,
          ca: file(tls.caFile),
          cert: file(tls.certFile),
          key: file(tls.keyFile),
        },
  });
}
