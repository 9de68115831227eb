/** The keys of the file about the server itself: `listen`, `keep_alive`, `workers`, `validate`. */

import { isIP } from 'node:net';
import { type Static, Type } from '@sinclair/typebox';
import { parseBlock } from '../../lib/http/public-address.ts';
import { type Environment, expandHome } from '../environment.ts';
import type { Findings, Path } from '../file/problem.ts';
import { byDefault, choice, closed, optional, seconds, text } from '../file/schema-types.ts';

export const DEFAULT_LISTEN = '127.0.0.1:5520';

const address = [
  Type.Integer({ minimum: 0, maximum: 65535 }),
  Type.String({ minLength: 1 }),
] as const;

const tls = closed(
  {
    cert_file: text('PEM file with the certificate, followed by any intermediate certificates.'),
    key_file: text("PEM file with the certificate's key, without a passphrase."),
  },
  'Serve HTTPS and WSS. Both files are watched, and read again on SIGHUP; open connections keep their certificate.',
);

export const listen = byDefault(
  Type.Union(
    [
      ...address,
      closed(
        {
          address: byDefault(
            Type.Union([...address], {
              description: 'Address and port; a port alone means loopback.',
            }),
            DEFAULT_LISTEN,
          ),
          tls: optional(tls, 'plain HTTP'),
          trusted_proxies: optional(
            Type.Array(Type.String({ minLength: 1 }), {
              description:
                "Addresses and blocks of the reverse proxies in front of this server, such as 10.0.0.0/8. Only their Forwarded and X-Forwarded-* headers are believed: the client's address, protocol and host.",
            }),
            'none',
          ),
          cors: optional(
            Type.Array(Type.String({ minLength: 1 }), {
              description:
                'Origins whose web pages may use the API with a key, such as https://chat.example.com; "*" is every origin, where every request needs a key. Never for the page at /ui and the admin API.',
            }),
            'none',
          ),
        },
        'The mapping form.',
      ),
    ],
    {
      description:
        'Address and port, such as "127.0.0.1:5520"; a port alone means loopback. Use a mapping to add TLS or trusted proxies.',
    },
  ),
  DEFAULT_LISTEN,
);

export const keepAlive = byDefault(
  seconds("Seconds of silence on a client's stream after which a ping is sent; 0 = never."),
  15,
);

export const workers = byDefault(
  Type.Integer({ minimum: 1, maximum: 256, description: 'Processes that share the port.' }),
  1,
);

export const validate = byDefault(
  choice(
    ['off', 'sample', 'all'],
    'Which streams to clients are checked against their protocol: none, one in twenty, or all. A violation is logged and counted, never repaired.',
  ),
  'off',
);

export interface Listen {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** Left out: plain HTTP. */
  readonly tls?: CertificateFiles | undefined;
  /** Addresses and blocks, `10.0.0.0/8`; never empty. Left out: no forwarding header is believed. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** Origins as browsers write them, or `*`; never empty. Left out: pages of no other origin may read answers. */
  readonly cors?: readonly string[] | undefined;
}

/** The paths of two PEM files. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** `https` with a certificate, else `http`. */
export const schemeOf = ({ tls }: Pick<Listen, 'tls'>): 'http' | 'https' =>
  tls === undefined ? 'http' : 'https';

/** `host:port`, `:port`, `[::1]:port`, a host, or a port; undefined for anything else. */
export function parseListen(written: string | number): Listen | undefined {
  const parts = /^(?:(\[[^\]]+\]|[^:]*):)?(\d+)$/.exec(String(written).trim());
  if (parts === null) {
    const host = String(written).trim();
    return isHost(host) ? { host, port: 5520 } : undefined;
  }
  const port = Number(parts[2]);
  const host = parts[1]?.replace(/^\[|\]$/g, '') || '127.0.0.1';
  if (parts[1]?.startsWith('[') === true && !host.includes(':')) return undefined;
  if (host === '*') return { host: '0.0.0.0', port };
  return port <= 65535 && isHost(host) ? { host, port } : undefined;
}

/** A well-formed name or address. Whether this machine has it shows only when the server starts. */
function isHost(host: string): boolean {
  if (host.includes(':')) return isIP(host) === 6;
  return /^[\d.]+$/.test(host) ? isIP(host) === 4 : /^[A-Za-z0-9_.-]+$/.test(host);
}

export function resolveListen(
  written: Static<typeof listen>,
  { userHome }: Environment,
  findings: Findings,
): Listen {
  if (typeof written !== 'object') return addressOf(written, ['listen'], findings);
  const { tls, trusted_proxies: proxies = [], cors = [] } = written;
  for (const [index, proxy] of proxies.entries()) {
    if (parseBlock(proxy) !== undefined) continue;
    findings.problems.push({
      path: ['listen', 'trusted_proxies', index],
      message: 'must be an address or a block of addresses, such as 10.0.0.0/8',
    });
  }
  for (const [index, origin] of cors.entries()) {
    if (origin === '*' || isOrigin(origin)) continue;
    findings.problems.push({
      path: ['listen', 'cors', index],
      message: 'must be an origin without a path, such as https://chat.example.com, or "*"',
    });
  }
  return {
    ...addressOf(written.address, ['listen', 'address'], findings),
    ...(tls !== undefined && {
      tls: {
        certFile: expandHome(tls.cert_file, userHome),
        keyFile: expandHome(tls.key_file, userHome),
      },
    }),
    ...(proxies.length > 0 && { trustedProxies: proxies }),
    ...(cors.length > 0 && { cors }),
  };
}

/** As a browser sends it: a scheme and a host in small letters, a port that is not the scheme's own, no path. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text) || text.includes('*')) return false;
  const { protocol, origin } = new URL(text);
  // Apps have schemes of their own: app://obsidian.md, chrome-extension://ID.
  return protocol === 'http:' || protocol === 'https:' ? origin === text : APP_ORIGIN.test(text);
}

const APP_ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+(?::\d+)?$/;

function addressOf(written: string | number, path: Path, { problems }: Findings) {
  const parsed = parseListen(written);
  if (parsed !== undefined) return parsed;
  problems.push({ path, message: 'must be host:port, such as 127.0.0.1:5520' });
  return { host: '127.0.0.1', port: 5520 };
}
