/** The keys of the file about the server itself: `listen`, `keep_alive`, `workers`, `validate`. */

import { isIP } from 'node:net';
import { parseBlock } from '../../lib/http/public-address.ts';
import {
  choice,
  closed,
  either,
  integer,
  list,
  type ProgramForm,
  path,
  type Reading,
  seconds,
  string,
} from '../file/schema.ts';

export const DEFAULT_LISTEN = '127.0.0.1:5520';

const written = [integer(undefined, 0, 65535), string(undefined, { minLength: 1 })] as const;

const tls = closed(
  'Serve HTTPS and WSS. Both files are read again when they change, and on SIGHUP.',
  {
    cert_file: path('PEM file with the certificate, followed by any intermediate certificates.'),
    key_file: path("PEM file with the certificate's key, without a passphrase."),
  },
);

const entry = (isLegal: (text: string) => boolean, message: string) =>
  string(undefined, { minLength: 1 }).reads((text, { path, findings }) => {
    if (!isLegal(text)) findings.problems.push({ path, message });
    return text;
  });

const mapping = closed('The mapping form.', {
  address: either(written, 'Address and port; a port alone means loopback.')
    .reads(addressOf)
    .byDefault(DEFAULT_LISTEN),
  tls: tls.optional('plain HTTP'),
  trusted_proxies: list(
    entry(
      (text) => parseBlock(text) !== undefined,
      'must be an address or a block of addresses, such as 10.0.0.0/8',
    ),
    'Addresses and blocks of the reverse proxies in front of this server, such as 10.0.0.0/8, whose Forwarded and X-Forwarded-* headers are believed.',
  ).optional('none'),
  cors: list(
    entry(
      (text) => text === '*' || isOrigin(text),
      'must be an origin without a path, such as https://chat.example.com, or "*"',
    ),
    'Origins whose web pages may use the API with a key, such as https://chat.example.com; "*" is every origin, where every request needs a key. Never for the page at /ui and the admin API.',
  ).optional('none'),
});

export const listen = either(
  [...written, mapping],
  'Address and port, such as "127.0.0.1:5520"; a port alone means loopback. Use a mapping to add TLS or trusted proxies.',
)
  .reads((value, reading): Listen => {
    if (typeof value !== 'object') return addressOf(value, reading);
    const { address, trustedProxies, cors, ...more } = value;
    // Empty ones are as none.
    return {
      ...address,
      ...more,
      ...(trustedProxies?.length && { trustedProxies }),
      ...(cors?.length && { cors }),
    };
  })
  .byDefault(DEFAULT_LISTEN);

export const keepAlive = seconds(
  "Seconds of silence on a client's stream after which a ping is sent; 0 = never.",
).byDefault(15);

export const workers = integer('Processes that share the port.', 1, 256).byDefault(1);

export const validate = choice(
  ['off', 'sample', 'all'],
  'Which streams to clients are checked against their protocol: none, one in twenty, or all. A violation is logged and counted, never repaired.',
).byDefault('off');

/** The paths of two PEM files. */
export type CertificateFiles = ProgramForm<typeof tls>;

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

/** As a browser sends it: a scheme and a host in small letters, a port that is not the scheme's own, no path. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text) || text.includes('*')) return false;
  const { protocol, origin } = new URL(text);
  // Apps have schemes of their own: app://obsidian.md, chrome-extension://ID.
  return protocol === 'http:' || protocol === 'https:' ? origin === text : APP_ORIGIN.test(text);
}

const APP_ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+(?::\d+)?$/;

function addressOf(written: string | number, { path, findings }: Reading): Listen {
  const parsed = parseListen(written);
  if (parsed !== undefined) return parsed;
  findings.problems.push({ path, message: 'must be host:port, such as 127.0.0.1:5520' });
  return { host: '127.0.0.1', port: 5520 };
}
