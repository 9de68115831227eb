/** Fetches a URL from an untrusted source: checks every address first, then connects to the checked address. */

import { lookup } from 'node:dns/promises';
import {
  checkAddresses,
  type Exceptions,
  parseAddress,
  RefusedAddress,
  type UrlHost,
  urlHost,
} from './public-address.ts';
import { readUpTo } from './read-up-to.ts';

/** All addresses of a host name. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface PublicFetch {
  /** Addresses that are allowed although they are not public. */
  readonly exceptions: Exceptions;
  /** Milliseconds for everything, redirects and body included. */
  readonly timeoutMs: number;
  /** The most bytes of the body, after decompression; the rest is not read. */
  readonly maxBytes: number;
  readonly maxRedirects: number;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called with the content type (lower case, no parameters) before the body is read; throws to refuse. */
  readonly accept?: (contentType: string) => void;
  /** Called for each host, redirects included, before a request is sent to it; throws to refuse. */
  readonly check?: (place: UrlHost) => void;
  /** The system's resolver when left out. */
  readonly resolve?: Resolve;
  /** PEM certificates trusted besides the system's. */
  readonly ca?: string;
}

export interface Fetched {
  /** The final URL after redirects. */
  readonly url: string;
  readonly status: number;
  /** Lower case, without parameters; '' when the server named none. */
  readonly contentType: string;
  /** Charset of the content type, lower case. */
  readonly charset: string | undefined;
  readonly bytes: Uint8Array;
  /** There was more than `maxBytes`. */
  readonly truncated: boolean;
}

/** The fetch failed; the message for a model or a person says why. */
export class FetchFailed extends Error {
  override readonly name = 'FetchFailed';

  constructor(
    message: string,
    /** Trying again later may help. */
    readonly retryable: boolean,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }
}

const systemResolve: Resolve = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Addresses of one host that are tried before giving up. */
const TRIES = 3;

/**
 * GETs a URL. Names are resolved here and the connection goes to the address that was checked, so a
 * resolver that answers differently the second time changes nothing; each redirect is checked anew.
 * @throws RefusedAddress, FetchFailed, whatever `accept` throws, or the signal's reason
 */
export async function publicFetch(text: string, options: PublicFetch): Promise<Fetched> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
  try {
    let place = urlHost(text);
    const cookies = new RedirectCookies();
    for (let redirects = 0; ; redirects++) {
      const response = await sendTo(place, cookies.of(place.host), options, signal);
      cookies.take(place.host, response.headers.getSetCookie());
      const location = REDIRECTS.has(response.status) ? response.headers.get('location') : null;
      if (location === null) return await read(place, response, options, signal);
      await response.body?.cancel();
      if (redirects >= options.maxRedirects) {
        throw new FetchFailed(`more than ${options.maxRedirects} redirects`, false);
      }
      place = urlHost(location, place.url.href);
    }
  } catch (thrown) {
    if (options.signal?.aborted) throw options.signal.reason;
    if (timeout.aborted) {
      throw new FetchFailed(`no complete answer within ${options.timeoutMs / 1000} s`, true);
    }
    throw thrown;
  }
}

const MAX_COOKIES = 50;
const MAX_COOKIE_CHARS = 4096;

/** `Max-Age=0`, and below. */
function isPast(attribute: string): boolean {
  const [name = '', value = ''] = attribute.split('=');
  return name.trim().toLowerCase() === 'max-age' && /^(?:0+|-\d+)$/.test(value.trim());
}

/** Cookies for the redirects of one fetch: consent pages redirect a client without one to themselves. */
class RedirectCookies {
  readonly #byHost = new Map<string, Map<string, string>>();

  /** The header for a request to this host. */
  of(host: string): string | undefined {
    const own = this.#byHost.get(host);
    if (own === undefined || own.size === 0) return undefined;
    return [...own].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  /** Every cookie is the host's own, whatever `Domain` it names. */
  take(host: string, lines: readonly string[]): void {
    const own = this.#byHost.get(host) ?? new Map<string, string>();
    this.#byHost.set(host, own);
    for (const line of lines.slice(0, MAX_COOKIES)) {
      const [pair = '', ...attributes] = line
        .slice(0, MAX_COOKIE_CHARS)
        .split(';')
        .map((part) => part.trim());
      const at = pair.indexOf('=');
      if (at <= 0) continue;
      if (attributes.some(isPast)) own.delete(pair.slice(0, at));
      else if (own.size < MAX_COOKIES) own.set(pair.slice(0, at), pair.slice(at + 1));
    }
  }
}

async function sendTo(
  place: UrlHost,
  cookie: string | undefined,
  options: PublicFetch,
  signal: AbortSignal,
): Promise<Response> {
  options.check?.(place);
  const addresses = await addressesOf(place, options.resolve ?? systemResolve, signal);
  checkAddresses(place, addresses, options.exceptions);
  let failure: unknown;
  for (const address of addresses.slice(0, TRIES)) {
    try {
      return await connect(place, address, cookie, options, signal);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      failure = thrown;
    }
  }
  const why = (failure as { code?: unknown } | undefined)?.code ?? 'no connection';
  throw new FetchFailed(`${place.host} cannot be reached (${String(why)})`, true, failure);
}

/** IPv4 first: a machine without IPv6 would wait on the other kind. */
async function addressesOf(
  place: UrlHost,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (parseAddress(place.host) !== undefined) return [place.host];
  // Names of this machine (RFC 6761), whatever a resolver returns for them.
  if (place.host === 'localhost' || place.host.endsWith('.localhost')) return ['127.0.0.1'];
  try {
    const found = await abortable(resolve(place.host, signal), signal);
    return found.toSorted((a, b) => Number(a.includes(':')) - Number(b.includes(':')));
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    throw new FetchFailed(`the name ${place.host} cannot be resolved`, true, thrown);
  }
}

function connect(
  place: UrlHost,
  address: string,
  cookie: string | undefined,
  options: PublicFetch,
  signal: AbortSignal,
): Promise<Response> {
  // A name would be resolved again, by another resolver.
  if (parseAddress(address) === undefined) throw new RefusedAddress(`${address} is no address`);
  const url = new URL(place.url);
  url.hash = '';
  url.hostname = address.includes(':') ? `[${address}]` : address;
  const named = parseAddress(place.host) === undefined;
  return fetch(url, {
    method: 'GET',
    redirect: 'manual',
    signal,
    headers: {
      'accept-encoding': 'gzip, deflate',
      ...options.headers,
      ...(cookie === undefined ? {} : { cookie }),
      host: place.url.host,
    },
    // The certificate must be the name's, though the connection is to the address.
    tls: {
      ...(named ? { serverName: place.host } : {}),
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    },
    // A kept connection to this address could be reused for another name.
    keepalive: false,
    decompress: false,
  } as RequestInit);
}

async function read(
  place: UrlHost,
  response: Response,
  options: PublicFetch,
  signal: AbortSignal,
): Promise<Fetched> {
  const [type = '', ...parameters] = (response.headers.get('content-type') ?? '').split(';');
  const contentType = type.trim().toLowerCase();
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^";\s]+)/i.exec(parameter)?.[1]?.toLowerCase())
    .find((found) => found !== undefined);
  if (!response.ok) {
    await response.body?.cancel();
    const again = response.status === 429 || response.status >= 500;
    const later = retryHint(response.headers.get('retry-after'));
    throw new FetchFailed(
      `${place.host} answered with HTTP status ${response.status}${later}`,
      again,
    );
  }
  try {
    options.accept?.(contentType);
  } catch (thrown) {
    await response.body?.cancel();
    throw thrown;
  }
  try {
    const body = await abortable(plain(response), signal);
    const read = await abortable(readUpTo(body, options.maxBytes), signal);
    return { url: place.url.href, status: response.status, contentType, charset, ...read };
  } catch (thrown) {
    if (signal.aborted || thrown instanceof FetchFailed) throw thrown;
    const encoding = response.headers.get('content-encoding');
    const why =
      encoding === null
        ? 'the connection broke off'
        : `the connection broke off, or the body is not encoded as ${encoding.slice(0, 100)}`;
    throw new FetchFailed(why, true, thrown);
  }
}

const FORMATS: Readonly<Record<string, string>> = {
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'brotli',
};

/** The body, decompressed while it is read, so that the limit also applies to a decompression bomb. */
async function plain(response: Response): Promise<ReadableStream<Uint8Array> | undefined> {
  const body = response.body ?? undefined;
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (body === undefined || encoding === 'identity' || encoding === '') return body;
  const format = FORMATS[encoding];
  if (format === undefined) {
    await body.cancel();
    throw new FetchFailed(
      `the body is encoded as ${encoding.slice(0, 100)}, which cannot be undone here`,
      false,
    );
  }
  if (format !== 'deflate') return body.pipeThrough(decompression(format));
  const [first, whole] = await peeked(body);
  return whole.pipeThrough(decompression(isZlib(first) ? 'deflate' : 'deflate-raw'));
}

const decompression = (format: string) =>
  new DecompressionStream(format as 'gzip') as unknown as ReadableWritablePair<
    Uint8Array,
    Uint8Array
  >;

/**
 * "deflate" means zlib's frame; some servers send the bare stream, and every browser reads both.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-8.4.1.2
 */
const isZlib = ([first = 0, second = 0]: Uint8Array) =>
  (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;

/** The first two bytes (fewer in a shorter stream), and the whole stream. */
async function peeked(
  body: ReadableStream<Uint8Array>,
): Promise<readonly [Uint8Array, ReadableStream<Uint8Array>]> {
  const reader = body.getReader();
  let first = new Uint8Array();
  while (first.length < 2) {
    const { done, value } = await reader.read();
    if (done) break;
    first = new Uint8Array(Buffer.concat([first, value]));
  }
  let sent = false;
  const whole = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (!sent) {
        sent = true;
        if (first.length > 0) return controller.enqueue(first);
      }
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return [first, whole];
}

/** The promise, or the signal's reason as soon as it fires. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {});
    return Promise.reject(signal.reason);
  }
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** The hint ` (try again in 30 seconds)` for the model; '' without a `Retry-After`. */
export function retryHint(value: string | null): string {
  if (value === null) return '';
  const seconds = /^\d{1,9}$/.test(value.trim())
    ? Number(value)
    : Math.ceil((Date.parse(value.slice(0, 100)) - Date.now()) / 1000);
  return Number.isFinite(seconds) ? ` (try again in ${Math.max(0, seconds)} seconds)` : '';
}
