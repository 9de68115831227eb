/** The providers of one configuration at run time, each created on first use. */

import type { ProviderConfig, TransportConfig } from '../config/sections/providers.ts';
import { certificateIn, keyPairOf } from '../lib/http/key-pair.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { messageOf } from '../lib/text/thrown.ts';
import { UnusableTlsFile } from './connection-error.ts';
import { fetchTransport } from './fetch-transport.ts';
import { http1Transport } from './http1/index.ts';
import { platformOf } from './platform/index.ts';
import { sameConfig } from './same-config.ts';
import type { Transport, UpstreamTls } from './transport.ts';
import { Upstream, type UpstreamOptions } from './upstream.ts';
import { socketTransport } from './websocket/index.ts';

type Providers = Readonly<Record<string, ProviderConfig>>;

export interface PoolOptions extends UpstreamOptions {
  /** The transport for base URLs of another kind than http, by scheme (`demo:`). */
  readonly builtIn: Readonly<Record<string, () => Transport>>;
  /** Whether the environment names a proxy for URLs of this scheme (`https:`). */
  readonly proxied: (scheme: string) => boolean;
}

/** Looks providers up; a reload makes a new pool, and streams that are open keep their old one. */
export class UpstreamPool {
  readonly #known = new Map<string, Upstream>();

  constructor(
    private readonly options: PoolOptions,
    private readonly providers: Providers,
  ) {}

  /** The provider of this pool's configuration. */
  of(config: ProviderConfig): Upstream {
    return this.#known.get(config.name) ?? this.#make(config);
  }

  /**
   * The pool of the next configuration. What did not change goes on as it is; of what changed in part, the
   * slots that are taken and the keys that cool down are known to both pools.
   */
  next(providers: Providers): UpstreamPool {
    const next = new UpstreamPool(this.options, providers);
    for (const [name, config] of Object.entries(providers)) {
      const last = memberOf(this.providers, name);
      if (last === undefined) continue;
      // Made now if it was not needed yet: an open exchange may still do so, and they are to share it.
      const before = this.of(last);
      if (sameConfig(last, config)) next.#known.set(name, before);
      else next.#make(config, before);
    }
    return next;
  }

  /** The provider of this name; undefined: it is not configured. */
  named(name: string): Upstream | undefined {
    const config = memberOf(this.providers, name);
    return config && this.of(config);
  }

  /** The providers that were asked so far. */
  get known(): Iterable<Upstream> {
    return this.#known.values();
  }

  #make(config: ProviderConfig, before?: Upstream): Upstream {
    const { builtIn, proxied, clock, onCooldown, replicas, gatewayId } = this.options;
    const scheme = config.baseUrl.slice(0, config.baseUrl.indexOf(':') + 1);
    const transport = builtIn[scheme]?.() ?? overSocket(config, networkTo(config, proxied));
    const platform = platformOf(config, transport);
    const options = { clock, onCooldown, replicas, platform, gatewayId };
    const upstream = new Upstream(config, transport, before, options);
    this.#known.set(config.name, upstream);
    return upstream;
  }
}

/** What this program's own client does not do: proxies and HTTP/2. */
export function usesFetch(
  { baseUrl, transport }: ProviderConfig,
  proxied: PoolOptions['proxied'],
): boolean {
  if (!/^https?:/i.test(baseUrl)) return false;
  const { proxy, http2 } = transport;
  return proxy !== undefined || http2 || proxied(baseUrl.slice(0, baseUrl.indexOf(':') + 1));
}

/** The way over the network to a provider, with connections of its own. */
export function networkTo(config: ProviderConfig, proxied: PoolOptions['proxied']): Transport {
  const { proxy, http2, tls } = config.transport;
  const options = tlsOptions(tls);
  // A proxy named by the environment (with its exceptions) is fetch's to find.
  return usesFetch(config, proxied)
    ? fetchTransport({ proxy: proxy?.reveal(), http2, tls: options })
    : http1Transport(options, config.timeouts.connectMs);
}

/** The same way, with the vendor's WebSocket before it where the configuration says so. */
function overSocket({ transport, timeouts, answers }: ProviderConfig, http: Transport): Transport {
  if (!transport.websocket) return http;
  const tls = tlsOptions(transport.tls);
  const { connectMs } = timeouts;
  const proxy = transport.proxy?.reveal();
  return socketTransport({ http, proxy, tls, connectMs, mostBytes: answers.frameBytes });
}

/** Read again for every connection, so that a renewed certificate needs no restart; undefined: the usual. */
function tlsOptions(tls: TransportConfig['tls']): (() => Promise<UpstreamTls>) | undefined {
  const { verify, caFile, certFile, keyFile } = tls;
  if (verify && (caFile ?? certFile ?? keyFile) === undefined) return undefined;
  const text = (path: string | undefined) =>
    path === undefined ? undefined : Bun.file(path).text();
  return async () => {
    try {
      const [ca, cert, key] = await Promise.all([text(caFile), text(certFile), text(keyFile)]);
      if (ca !== undefined) certificateIn(ca, caFile!);
      if (cert !== undefined && key !== undefined) keyPairOf(cert, key, certFile!, keyFile!);
      return {
        rejectUnauthorized: verify,
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
      };
    } catch (thrown) {
      throw new UnusableTlsFile(messageOf(thrown), { cause: thrown });
    }
  };
}
