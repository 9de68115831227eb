/** What goes out for one request, head and body (RFC 9112 §3). */

import { type HeaderFields, HeaderList } from '../../lib/header-list.ts';
import type { UpstreamRequest } from '../transport.ts';

/** Where a URL leads, in the parts that a connection and a request line need. */
export interface Origin {
  /** Equal for URLs that may share a connection: `https://api.example:443`. */
  readonly key: string;
  readonly tls: boolean;
  /** As a resolver takes it: without the brackets of IPv6. */
  readonly hostname: string;
  readonly port: number;
  /** For the `host` header: with the port where it is not the scheme's own. */
  readonly host: string;
}

export interface Place {
  readonly origin: Origin;
  /** Path and query. */
  readonly path: string;
}

/** @throws TypeError when it is no URL of http or https */
export function placeOf(text: string): Place {
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError(`no http URL: ${url.protocol}`);
  }
  const tls = url.protocol === 'https:';
  const port = url.port === '' ? (tls ? 443 : 80) : Number(url.port);
  const hostname = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  const key = `${url.protocol}//${url.hostname}:${port}`;
  return {
    origin: { key, tls, hostname, port, host: url.host },
    path: url.pathname + url.search,
  };
}

// Up to this much a body is copied behind its head: one piece is one packet and one system call.
const TOGETHER_BYTES = 64 * 1024;

const FRAMING = new Set(['content-length', 'transfer-encoding', 'connection', 'host']);

interface Start {
  readonly place: Place;
  readonly method: string;
  readonly lines: string;
  readonly host: string | null;
  readonly text: string;
}
// Most requests begin as the one before them did.
let last: Start | undefined;

/** The request line and the fields that do not depend on the body. */
function startOf(place: Place, method: string, headers: HeaderFields): string {
  // No value of a list, nor of `Headers`, holds a line break.
  const lines = HeaderList.from(headers).lines(FRAMING);
  const host = headers.get('host');
  if (
    last?.place !== place ||
    last.method !== method ||
    last.lines !== lines ||
    last.host !== host
  ) {
    const line = `${method} ${place.path} HTTP/1.1\r\n`;
    const text = `${line}host: ${host ?? place.origin.host}\r\n${lines}`;
    last = { place, method, lines, host, text };
  }
  return last.text;
}

/** The pieces to be written, in order. A `host` among the headers stands in for the URL's. */
export function requestBytes(
  place: Place,
  { method, headers, body }: Pick<UpstreamRequest, 'method' | 'headers' | 'body'>,
): readonly Uint8Array[] {
  const start = startOf(place, method, headers);
  const end = body === undefined ? '\r\n' : `content-length: ${body.length}\r\n\r\n`;
  const together = body !== undefined && body.length <= TOGETHER_BYTES;
  const head = start.length + end.length;
  const bytes = Buffer.allocUnsafe(together ? head + body.length : head);
  // Not joined: that would be one more string for every request.
  bytes.write(start, 0, 'latin1');
  bytes.write(end, start.length, 'latin1');
  if (body === undefined) return [bytes];
  if (!together) return [bytes, body];
  bytes.set(body, head);
  return [bytes];
}
