/** The body of a form as it comes from a client's connection, within its limits. */

import { GatewayError } from '../conversation/errors.ts';
import type { FormSource } from '../gateway/types.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { type Connections, PROGRESS_BYTES } from './connections.ts';

export const isForm = (headers: ReadonlyHeaders): boolean =>
  /^\s*multipart\/form-data\b/i.test(headers.get('content-type') ?? '');

/**
 * @param most `limits.form_bytes`
 * @throws GatewayError too_large for a length above it, invalid_request (415) for a content encoding
 */
export function formSource(
  request: Request,
  headers: ReadonlyHeaders,
  most: number,
  connections: Connections,
): FormSource {
  const stated = headers.get('content-length');
  const length = stated === null ? undefined : Number(stated);
  if (length !== undefined && length > most) throw tooLarge(most);
  const encoding = headers.get('content-encoding');
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity') {
    const message = 'A form is taken without a content encoding only.';
    throw new GatewayError('invalid_request', message, { status: 415, param: 'content-encoding' });
  }
  return new RequestForm(request, length, most, connections);
}

const tooLarge = (most: number) =>
  new GatewayError(
    'too_large',
    `The form is larger than the ${most} bytes that this gateway takes (limits.form_bytes).`,
  );

class RequestForm implements FormSource {
  readonly length: number | undefined;
  readonly #request: Request;
  readonly #most: number;
  readonly #connections: Connections;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #size = 0;
  #reported = 0;
  #timed = true;
  #over = false;

  constructor(
    request: Request,
    length: number | undefined,
    most: number,
    connections: Connections,
  ) {
    this.#request = request;
    this.length = length;
    this.#most = most;
    this.#connections = connections;
    this.#reader = request.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
    connections.reading(request, 0);
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#over) return undefined;
    const { done, value } = (await this.#reader?.read()) ?? { done: true, value: undefined };
    if (done || value === undefined) {
      this.#over = true;
      this.endTimeLimit();
      return undefined;
    }
    this.#size += value.length;
    if (this.#size > this.#most) {
      this.cancel();
      throw tooLarge(this.#most);
    }
    if (this.#timed && this.#size - this.#reported >= PROGRESS_BYTES) {
      this.#reported = this.#size;
      this.#connections.reading(this.#request, 0);
    }
    return value;
  }

  endTimeLimit(): void {
    this.#timed = false;
    this.#connections.working(this.#request);
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.endTimeLimit();
    this.#reader?.cancel().catch(() => {});
  }
}
