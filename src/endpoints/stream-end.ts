/** Says whether an event stream of an endpoint ended, failed, or only stopped coming. */

import type { Codec } from '../codecs/codec.ts';
import type { GatewayError } from '../conversation/errors.ts';
import { asBuffer } from '../lib/bytes/bytes.ts';
import type { Endpoint } from './endpoint.ts';

const LF = 0x0a;
/** The type of a frame stands in its first bytes; errors are no longer. */
const HEAD_BYTES = 4096;

/** A frame of these types is followed by another one: `transcript.text.delta`, `image_generation.partial_image`. */
const GOES_ON =
  /^event:\s{0,4}[a-z_.]{1,60}\.(?:delta|partial_image)|"type"\s{0,4}:\s{0,4}"[a-z_.]{1,60}\.(?:delta|partial_image)"/;
const FAILED =
  /^event:\s{0,4}error|^data:\s{0,4}\{\s{0,9}"(?:error"\s{0,4}:\s{0,4}["{]|type"\s{0,4}:\s{0,4}"error")/m;
/** Every vendor of completions in OpenAI's form sends one of these. */
const FINISHED = /^data:\s{0,4}\[DONE\]|"finish_reason"\s{0,4}:\s{0,4}"/;

/** Sees every chunk of a stream; keeps the beginnings of its last lines. */
export class StreamEnd {
  readonly #isText: boolean;
  #line = '';
  #event = '';
  /** The last lines with data and the event of theirs. */
  #last = '';
  #finished = false;
  #failed: string | undefined;

  constructor(
    { name }: Pick<Endpoint, 'name'>,
    private readonly protocol: Codec,
  ) {
    this.#isText = name === 'completions';
  }

  push(chunk: Uint8Array): void {
    const bytes = asBuffer(chunk);
    for (let at = 0; at < bytes.length; ) {
      const found = bytes.indexOf(LF, at);
      const end = found < 0 ? bytes.length : found;
      const room = HEAD_BYTES - this.#line.length;
      if (room > 0) this.#line += bytes.toString('latin1', at, Math.min(end, at + room));
      if (found < 0) return;
      this.#closeLine();
      at = found + 1;
    }
  }

  #closeLine(): void {
    const line = this.#line;
    this.#line = '';
    if (line === '' || line === '\r') this.#event = '';
    else if (line.startsWith('event:')) this.#event = `${line}\n`;
    if (!line.startsWith('data:')) return;
    this.#last = this.#event + line;
    if (this.#isText && FINISHED.test(line)) this.#finished = true;
    if (FAILED.test(this.#last)) this.#failed = this.#last;
  }

  /** The stream has ended in its middle. False where that cannot be told. */
  get isCut(): boolean {
    this.#closeLine();
    if (this.#failed !== undefined) return false;
    // Some servers have another form, whose end is not known here.
    const isOpen = this.#isText && !this.#finished && this.#last.includes('"choices"');
    return isOpen || GOES_ON.test(this.#last);
  }

  /** The vendor's own error, which its client has got. */
  get error(): GatewayError | undefined {
    if (this.#failed === undefined) return undefined;
    const line = this.#failed.slice(this.#failed.indexOf('data:') + 5);
    const data = Buffer.from(line, 'latin1').toString().trim();
    const event = this.#failed.startsWith('event:') ? 'error' : '';
    const bytes = new Uint8Array();
    return this.protocol.digestStream([{ event, data, bytes, from: 0, to: 0 }]).error;
  }
}
