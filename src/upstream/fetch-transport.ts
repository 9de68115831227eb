/** The transport that uses Bun's fetch, for proxies and HTTP/2. */

import { wholeBytes } from '../lib/bytes/byte-list.ts';
import { FlatHeaders } from '../lib/http/headers.ts';
import {
  CONTROLS,
  EACH_CONTROL,
  type HeadLimits,
  MalformedReply,
  USUAL_LIMITS,
} from './http1/response-parser.ts';
import { withMore } from './request-headers.ts';
import {
  type ChunkSink,
  collect,
  isRead,
  type RequestStream,
  type ResponseBody,
  type Transport,
  type UpstreamAnswer,
  type UpstreamTls,
} from './transport.ts';

// The colon, the space and the end of a line.
const LINE_BYTES = 4;

export interface FetchOptions {
  readonly proxy?: string;
  readonly http2?: boolean;
  readonly tls?: () => Promise<UpstreamTls>;
}

/**
 * Bun's fetch with everything off that would come between: no decompression, no timeout of its own
 * (6 minutes by default, which kills models that think), no redirects with the key in hand.
 */
export function fetchTransport({ proxy, http2, tls }: FetchOptions = {}): Transport {
  const extra: Record<string, unknown> = {};
  if (proxy !== undefined) extra.proxy = proxy;
  if (http2) extra.protocol = 'http2';
  return async ({ url, method, headers, ownHeaders, body, abort, limits }) =>
    checked(
      limits,
      await fetch(url, {
        method,
        headers: withMore(headers, ownHeaders).record(),
        ...(isRead(body)
          ? { body: webStream(body), duplex: 'half' }
          : { body: body && wholeBytes(body) }),
        signal: abort.signal,
        redirect: 'manual',
        decompress: false,
        timeout: false,
        ...(tls === undefined ? {} : { tls: await tls() }),
        ...extra,
      } as object),
    );
}

/** The body of a request as fetch takes it. */
const webStream = (body: RequestStream): ReadableStream<Uint8Array> =>
  new ReadableStream(
    {
      async pull(controller) {
        const piece = await body.read();
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      },
    },
    { highWaterMark: 0 },
  );

/** @throws MalformedReply where the head is larger than the limits */
function checked(limits: HeadLimits = USUAL_LIMITS, response: Response): UpstreamAnswer {
  let count = 0;
  let bytes = 0;
  let controls = false;
  for (const [name, value] of response.headers) {
    count++;
    bytes += name.length + value.length + LINE_BYTES;
    controls ||= CONTROLS.test(value);
  }
  const { headers, headerBytes } = limits;
  const wrong =
    bytes > headerBytes
      ? `more than ${headerBytes} bytes of headers (limits.header_bytes)`
      : count > headers
        ? `more than ${headers} headers (limits.headers)`
        : undefined;
  if (wrong === undefined) {
    const answer = answerOf(response);
    return controls ? { ...answer, headers: withoutControls(response.headers) } : answer;
  }
  response.body?.cancel().catch(() => {});
  throw new MalformedReply(wrong);
}

function withoutControls(headers: Headers): FlatHeaders {
  const list = new FlatHeaders();
  for (const [name, value] of headers) list.append(name, value.replace(EACH_CONTROL, ' '));
  return list;
}

/** A web response as an upstream's answer. */
export const answerOf = (response: Response): UpstreamAnswer => ({
  status: response.status,
  headers: response.headers,
  body: streamSource(() => response.body),
});

type Batch = { readonly done: boolean; readonly value?: readonly Uint8Array[] };
type Reader = ReadableStreamDefaultReader<Uint8Array> & { readMany(): Batch | Promise<Batch> };

const taken = ({ done, value }: Batch) => {
  if (value !== undefined && value.length > 0) return value;
  return done ? undefined : [];
};

/** A web stream as a source. */
export function streamSource(stream: () => ReadableStream<Uint8Array> | null): ResponseBody {
  let reader: Reader | undefined;
  let cancelled = false;
  let active = false;
  let slow: Promise<void> | undefined;
  const came = (batch: Batch) => {
    active = true;
    return taken(batch);
  };
  const next = () => {
    if (cancelled) return undefined;
    reader ??= stream()?.getReader() as Reader | undefined;
    const many = reader?.readMany();
    if (many === undefined) return undefined;
    return many instanceof Promise ? many.then(came) : came(many);
  };
  const source: ResponseBody = {
    read: next,
    async pipe(sink: ChunkSink) {
      for (let batch = await next(); batch !== undefined; batch = await next()) {
        for (const chunk of batch) {
          slow = sink.write(chunk);
          if (slow !== undefined) await slow;
          slow = undefined;
        }
      }
    },
    takeActivity() {
      const wasActive = active || slow !== undefined;
      active = false;
      return wasActive;
    },
    readAll: (most = Number.POSITIVE_INFINITY) => collect(source, most),
    cancel() {
      if (cancelled) return;
      cancelled = true;
      const gone = reader === undefined ? stream()?.cancel() : reader.cancel();
      // A stream that has failed already says so again.
      gone?.catch(() => {});
    },
  };
  return source;
}
