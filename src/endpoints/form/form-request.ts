/** A multipart form from a client: its beginning is kept for retries, the rest is streamed to the vendor. */

import { type AllowedOutput, allowedOutput } from '../../conversation/account/allowed-output.ts';
import { GatewayError } from '../../conversation/errors.ts';
import type { FormSource } from '../../gateway/types.ts';
import type { RequestStream } from '../../upstream/transport.ts';

import type { EndpointRequest } from '../types.ts';
import { boundaryOf, FormParser } from './parser.ts';
import { FormSpool } from './spool.ts';

export interface FormOptions {
  readonly contentType: string;
  /** `limits.form_spool_bytes` */
  readonly spoolBytes: number;
  /** For temporary files. */
  readonly folder: string;
}

/** Reads a multipart form, the first part or all of it. `recorded()` returns the fields read so far, at any time. */
export class FormReader {
  readonly #source: FormSource;
  readonly #options: FormOptions;
  readonly #spool: FormSpool;
  #parser: FormParser | undefined;

  constructor(source: FormSource, options: FormOptions) {
    this.#source = source;
    this.#options = options;
    this.#spool = new FormSpool(options.folder);
  }

  /**
   * The request of a form. One that fits into the spool is read to its end first, so that nothing of a malformed
   * one is sent; of a larger one the model must be known by then.
   * @throws GatewayError invalid_request that names the field; too_large where `model` comes too late
   */
  async read(): Promise<EndpointRequest> {
    const { contentType, spoolBytes } = this.#options;
    const parser = new FormParser(boundaryOf(contentType));
    this.#parser = parser;
    const spool = this.#spool;
    while (spool.size <= spoolBytes) {
      const chunk = await this.#source.read();
      if (chunk === undefined) {
        parser.end();
        return new FormRequest(parser, spool, undefined, contentType, spool.size);
      }
      parser.push(chunk);
      await spool.append(chunk);
    }
    if (parser.model === undefined) {
      throw new GatewayError(
        'too_large',
        `The field 'model' is not within the first ${spoolBytes} bytes of the form (limits.form_spool_bytes). Send it before the files.`,
        { param: 'model' },
      );
    }
    this.#source.endTimeLimit();
    return new FormRequest(parser, spool, this.#source, contentType, this.#source.length);
  }

  /** The fields that have been read, as JSON. */
  recorded(): Uint8Array {
    return recordOf(this.#parser?.fields ?? [], undefined, false);
  }

  close(): void {
    this.#source.cancel();
    void this.#spool.close();
  }
}

class FormRequest implements EndpointRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly allowed: AllowedOutput;
  readonly contentType: string;
  readonly #parser: FormParser;
  readonly #spool: FormSpool;
  /** What follows the spool; undefined: nothing. */
  readonly #rest: FormSource | undefined;
  /** Bytes of the whole form, where they are known. */
  readonly #length: number | undefined;
  #spent = false;

  constructor(
    parser: FormParser,
    spool: FormSpool,
    rest: FormSource | undefined,
    contentType: string,
    length: number | undefined,
  ) {
    this.#parser = parser;
    this.#spool = spool;
    this.#rest = rest;
    this.#length = length;
    this.contentType = contentType;
    this.model = parser.model!;
    const text = (field: string) => parser.fields.find(({ name }) => name === field)?.value;
    this.stream = text('stream')?.toLowerCase() === 'true';
    this.allowed = allowedOutput({ n: text('n') ?? null });
  }

  get bytes(): number {
    return this.#length ?? this.#spool.size;
  }

  get spent(): boolean {
    return this.#spent;
  }

  bodyFor({ model }: { readonly model: string }): RequestStream {
    const { modelStart, modelEnd } = this.#parser;
    const same = model === this.model;
    const name = Buffer.from(model);
    const more = same ? 0 : name.length - (modelEnd - modelStart);
    const pieces = same
      ? this.#pieces([[0, this.#spool.size]], undefined)
      : this.#pieces(
          [
            [0, modelStart],
            [modelEnd, this.#spool.size],
          ],
          name,
        );
    return {
      length: this.#length === undefined ? undefined : this.#length + more,
      async read() {
        const { done, value } = await pieces.next();
        return done ? undefined : value;
      },
    };
  }

  /** What was kept, with the model's name between its parts, and then what still comes. */
  async *#pieces(
    parts: readonly (readonly [number, number])[],
    between: Buffer | undefined,
  ): AsyncGenerator<Uint8Array, undefined> {
    for (const [index, [from, to]] of parts.entries()) {
      if (index > 0 && between !== undefined) yield between;
      yield* this.#spool.read(from, to);
    }
    if (this.#rest === undefined) return;
    this.#spent = true;
    for (;;) {
      const chunk = await this.#rest.read();
      if (chunk === undefined) break;
      // What is malformed ends the request in its middle: a vendor never gets it whole.
      this.#parser.push(chunk);
      if (chunk.length > 0) yield chunk;
    }
    this.#parser.end();
  }

  recorded(model: string): Uint8Array {
    return recordOf(this.#parser.fields, model, this.#rest === undefined);
  }

  close(): void {
    this.#rest?.cancel();
    void this.#spool.close();
  }
}

/** The fields without the bytes of their files. `complete`: these are all. */
function recordOf(
  fields: FormParser['fields'],
  model: string | undefined,
  complete: boolean,
): Uint8Array {
  const form = fields.map(({ contentType, ...field }) => ({
    ...field,
    ...(contentType !== undefined && { content_type: contentType }),
    ...(field.name === 'model' && model !== undefined && { value: model }),
  }));
  return Buffer.from(JSON.stringify({ form, ...(!complete && { incomplete: true }) }));
}
