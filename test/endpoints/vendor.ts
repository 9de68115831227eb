/** A vendor of embeddings, images and audio for tests: keeps what it got, and answers as a test asks. */

export interface ReceivedRequest {
  readonly path: string;
  readonly headers: Headers;
  readonly body: Buffer;
}

export interface EndpointVendor {
  /** Its base URL, with `/v1`. */
  readonly url: string;
  /** Requests that came whole. */
  readonly received: ReceivedRequest[];
  /** Requests that began. */
  readonly begun: () => number;
  stop(): Promise<void>;
}

export type VendorAnswer = (
  request: ReceivedRequest,
  number: number,
) => Response | Promise<Response>;

export function startVendor(answer: VendorAnswer): EndpointVendor {
  const received: ReceivedRequest[] = [];
  let begun = 0;
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request) {
      begun++;
      const body = Buffer.from(await request.arrayBuffer());
      const path = new URL(request.url).pathname;
      const one = { path, headers: request.headers, body };
      received.push(one);
      return answer(one, received.length);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    received,
    begun: () => begun,
    stop: () => server.stop(true),
  };
}

export const failing = (status: number, message = 'not now') =>
  Response.json({ error: { message, type: 'server_error' } }, { status });
