/** The body of a form as it comes from a client's connection, within its limits. */

import { GatewayError } from '../conversation/errors.ts';
import type { FormSource } from '../gateway/types.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { type Connections, PROGRESS_BYTES } from './connections.ts';

export const isForm = (headers: ReadonlyHeaders): boolean =>
  /^\s*multipart\/form-data\b/i.test(headers.get('content-type') ?? '');

/**
 * @param most `limits.form_bytes`
 * @param key that holds what comes, as of {@link Connections.ownerOf}
 * @throws GatewayError too_large for a length above it, invalid_request (415) for a content encoding
 */
export function formSource(
  request: Request,
  headers: ReadonlyHeaders,
  most: number,
  connections: Connections,
  key = '',
): FormSource {
  const stated = headers.get('content-length');
  const length = stated === null ? undefined : Number(stated);
  if (length !== undefined && length > most) throw tooLarge(most);
  const encoding = headers.get('content-encoding');
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity') {
    const message = 'A form is taken without a content encoding only.';
    throw new GatewayError('invalid_request', message, { status: 415, param: 'content-encoding' });
  }
  return new RequestForm(request, length, most, connections, key);
}

const tooLarge = (most: number) =>
  new GatewayError(
    'too_large',
    `The form is larger than the ${most} bytes that this gateway takes (limits.form_bytes).`,
  );

const tooSlow = (ms: number) =>
  new GatewayError(
    'timeout',
    `The part of the form that is kept before it is sent did not come within ${ms / 1000} seconds (${SLOWEST} times limits.idle_body).`,
    { status: 408, code: 'upload_too_slow', retryable: false },
  );

/** What is kept of a form comes within so many times the silence that a body may have. */
const SLOWEST = 20;

class RequestForm implements FormSource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #owner: string;
  readonly #began = performance.now();
  #size = 0;
  /** Bytes that are on the owner's account, until the vendor sets the pace. */
  #held = 0;
  #reported = 0;
  #timed = true;
  #over = false;

  constructor(
    private readonly request: Request,
    readonly length: number | undefined,
    private readonly most: number,
    private readonly connections: Connections,
    key: string,
  ) {
    this.#owner = connections.ownerOf(request, key);
    this.#reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
    connections.reading(request, 0);
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#over) return undefined;
    const { done, value } = (await this.#next()) ?? { done: true, value: undefined };
    if (done || value === undefined) {
      this.#over = true;
      this.endTimeLimit();
      return undefined;
    }
    this.#size += value.length;
    if (this.#size > this.most) {
      this.cancel();
      throw tooLarge(this.most);
    }
    if (this.#timed) this.#hold(value.length);
    return value;
  }

  #next() {
    // Once the vendor sets the pace, its try is what ends.
    const next = this.#reader?.read();
    return this.#timed ? next && this.connections.uploaded(next) : next;
  }

  #hold(bytes: number): void {
    try {
      const longest = SLOWEST * this.connections.bodyIdleMs;
      if (longest > 0 && performance.now() - this.#began > longest) throw tooSlow(longest);
      this.connections.hold(this.#owner, bytes);
    } catch (thrown) {
      this.cancel();
      throw thrown;
    }
    this.#held += bytes;
    if (this.#size - this.#reported < PROGRESS_BYTES) return;
    this.#reported = this.#size;
    this.connections.reading(this.request, 0);
  }

  endTimeLimit(): void {
    this.#timed = false;
    this.connections.release(this.#owner, this.#held);
    this.#held = 0;
    this.connections.working(this.request);
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.endTimeLimit();
    this.#reader?.cancel().catch(() => {});
  }
}
