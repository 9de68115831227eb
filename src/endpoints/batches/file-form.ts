/** A form with a file for a vendor to keep, and the same form with other names of models in a file of requests. */

import { invalid, missing } from '../../conversation/errors.ts';
import type { FormSource } from '../../gateway/types.ts';
import type { RequestStream } from '../../upstream/transport.ts';
import { boundaryOf, FormParser } from '../form/parser.ts';
import type { FormSpool } from '../form/spool.ts';
import { type FoundRequest, requestLines } from './batch-requests.ts';

export class FileForm {
  readonly #start: number;
  readonly #end: number;

  private constructor(
    private readonly spool: FormSpool,
    readonly purpose: string | undefined,
    [start, end]: readonly [number, number],
  ) {
    this.#start = start;
    this.#end = end;
  }

  /** Reads the whole form into the spool. @throws GatewayError invalid_request, too_large */
  static async read(form: FormSource, contentType: string, spool: FormSpool): Promise<FileForm> {
    const parser = new FormParser(boundaryOf(contentType), false);
    for (;;) {
      const chunk = await form.read();
      if (chunk === undefined) break;
      parser.push(chunk);
      await spool.append(chunk);
    }
    parser.end();
    for (const name of ['file', 'purpose']) {
      if (parser.fields.filter((field) => field.name === name).length > 1) {
        throw invalid(`The form has the field '${name}' twice.`, name);
      }
    }
    const place = parser.places.get('file');
    if (place === undefined) throw missing('file');
    const purpose = parser.fields.find(({ name }) => name === 'purpose')?.value;
    return new FileForm(spool, purpose, place);
  }

  /** Shows each request of the file. @throws GatewayError invalid_request that names the line */
  async requests(lineBytes: number, see: (request: FoundRequest) => undefined): Promise<void> {
    for await (const _ of this.#lines(lineBytes, see));
  }

  whole(): RequestStream {
    return streamOf(this.spool.size, this.spool.read(0, this.spool.size));
  }

  /** @param growth bytes that the file has more with these names */
  renamed(lineBytes: number, growth: number, nameOf: (model: string) => string): RequestStream {
    return streamOf(this.spool.size + growth, this.#renamed(lineBytes, nameOf));
  }

  async *#renamed(lineBytes: number, nameOf: (model: string) => string) {
    yield* this.spool.read(0, this.#start);
    yield* this.#lines(lineBytes, ({ model }) => nameOf(model));
    yield* this.spool.read(this.#end, this.spool.size);
  }

  #lines(lineBytes: number, see: (request: FoundRequest) => string | undefined) {
    return requestLines(this.spool.read(this.#start, this.#end), lineBytes, see);
  }
}

const streamOf = (length: number, pieces: AsyncGenerator<Uint8Array>): RequestStream => ({
  length,
  async read() {
    const { done, value } = await pieces.next();
    return done === true ? undefined : value;
  },
});
