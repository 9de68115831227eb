/** Encodes one HTTP/1.1 request, head and body (RFC 9112 §3). */

import { bytePieces } from '../../lib/bytes/byte-list.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../../lib/http/headers.ts';
import { isRead, type RequestStream, type UpstreamRequest } from '../transport.ts';

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
function startOf(place: Place, method: string, headers: ReadonlyHeaders): string {
  // No value of a list, nor of `Headers`, holds a line break.
  const lines = FlatHeaders.from(headers).lines(FRAMING);
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

/** The line that frames the body (RFC 9112 §6); '' without one. */
function framingOf(body: UpstreamRequest['body']): string {
  if (body === undefined) return '';
  return body.length === undefined
    ? 'transfer-encoding: chunked\r\n'
    : `content-length: ${body.length}\r\n`;
}

const NOTHING: readonly Uint8Array[] = [];

/** One request as it goes over the wire; its bytes are laid out when they are written. */
export class RequestBytes {
  /** Bytes of all parts. */
  readonly size: number;
  readonly #start: string;
  readonly #end: string;
  readonly #body: readonly Uint8Array[];
  /** The body, where it is read while it is sent: it follows these bytes. */
  readonly stream: RequestStream | undefined;

  /** A `host` among the headers stands in for the URL's. */
  constructor(
    place: Place,
    {
      method,
      headers,
      ownHeaders,
      body,
    }: Pick<UpstreamRequest, 'method' | 'headers' | 'ownHeaders' | 'body'>,
  ) {
    this.#start = startOf(place, method, headers);
    this.#end = `${framingOf(body)}${ownHeaders?.lines(FRAMING) ?? ''}\r\n`;
    this.stream = isRead(body) ? body : undefined;
    const whole = isRead(body) ? undefined : body;
    this.#body = whole === undefined ? NOTHING : bytePieces(whole);
    this.size = this.#start.length + this.#end.length + (whole?.length ?? 0);
  }

  /** Writes all of it to the beginning of `bytes`, which holds `size` at least. */
  writeTo(bytes: Buffer): void {
    this.#writeHead(bytes);
    let at = this.#start.length + this.#end.length;
    for (const piece of this.#body) {
      bytes.set(piece, at);
      at += piece.length;
    }
  }

  /** In order, the body as it is. */
  get pieces(): readonly Uint8Array[] {
    const head = Buffer.allocUnsafe(this.#start.length + this.#end.length);
    this.#writeHead(head);
    return [head, ...this.#body];
  }

  // Not joined: that would be one more string for every request.
  #writeHead(bytes: Buffer): void {
    bytes.write(this.#start, 0, 'latin1');
    bytes.write(this.#end, this.#start.length, 'latin1');
  }
}
