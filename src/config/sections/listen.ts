/** The keys of the file about the server itself: `listen`, `keep_alive`, `workers`, `validate`. */

import { isIP } from 'node:net';
import { type Static, Type } from '@sinclair/typebox';
import type { Findings } from '../file/problem.ts';
import { byDefault, choice, seconds } from '../file/schema-types.ts';

export const DEFAULT_LISTEN = '127.0.0.1:5520';

export const listen = byDefault(
  Type.Union([Type.Integer({ minimum: 0, maximum: 65535 }), Type.String({ minLength: 1 })], {
    description: 'Address and port, "127.0.0.1:5520"; a port alone means loopback.',
  }),
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
    'Which streams are checked against their protocol as clients get them: none, one in twenty, or all. A violation is logged and counted, never repaired.',
  ),
  'off',
);

export interface Listen {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

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

export function resolveListen(written: Static<typeof listen>, findings: Findings): Listen {
  const parsed = parseListen(written);
  if (parsed !== undefined) return parsed;
  findings.problems.push({
    path: ['listen'],
    message: 'must be host:port, such as 127.0.0.1:5520',
  });
  return { host: '127.0.0.1', port: 5520 };
}
