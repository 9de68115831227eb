/** AWS' binary event stream (`application/vnd.amazon.eventstream`) as server-sent events of Messages. */

import { crc32 } from 'node:zlib';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { Pieces } from '../../../lib/bytes/bytes.ts';
import { sseEvent } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, tryParse } from '../../../lib/json/json.ts';
import { type ChunkSink, collect, type ResponseBody } from '../../transport.ts';
import { exceptionName, messagesError } from '../error-answer.ts';

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const codec = new EventStreamCodec(
  (bytes) => decoder.decode(typeof bytes === 'string' ? encoder.encode(bytes) : bytes),
  (text) => encoder.encode(text),
);

/** Length of the message, length of its headers, checksum of both. */
const PRELUDE = 12;
/** The prelude and the checksum of the whole. */
const MIN = 16;

/** What is no message of the format: nothing behind it can be read. */
class BrokenEventStream extends Error {
  constructor(what: string) {
    super(`the event stream is broken: ${what}`);
  }
}

/** Splits chunks into messages, whose checksums hold. Linear in the bytes, however small the chunks are. */
export class MessageReader {
  #pieces = new Pieces();
  #wanted = PRELUDE;

  /** @param mostBytes that a message may have */
  constructor(private readonly mostBytes: number) {}

  /** The messages that this chunk completes. @throws BrokenEventStream */
  push(chunk: Uint8Array): readonly EventStreamMessage[] {
    this.#pieces.push(chunk);
    const messages: EventStreamMessage[] = [];
    while (this.#pieces.size >= this.#wanted) {
      const bytes = this.#pieces.joined();
      let at = 0;
      this.#wanted = PRELUDE;
      while (bytes.length - at >= PRELUDE) {
        const length = this.#lengthAt(bytes, at);
        if (bytes.length - at < length) {
          this.#wanted = length;
          break;
        }
        messages.push(messageOf(bytes.subarray(at, at + length)));
        at += length;
      }
      this.#pieces = new Pieces();
      // A copy: what came before it must not stay in memory for it.
      if (at < bytes.length) this.#pieces.push(bytes.slice(at));
    }
    return messages;
  }

  /** The stream has ended. @throws BrokenEventStream in the middle of a message */
  end(): void {
    if (this.#pieces.size > 0) throw new BrokenEventStream('it ends in the middle of a message');
  }

  /** The length is checked before it is waited for. */
  #lengthAt(bytes: Uint8Array, at: number): number {
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, PRELUDE);
    if (view.getUint32(8) !== crc32(bytes.subarray(at, at + 8))) {
      throw new BrokenEventStream('the checksum of a prelude is wrong');
    }
    const length = view.getUint32(0);
    if (length < MIN || length > this.mostBytes) {
      throw new BrokenEventStream(`a message of ${length} bytes (limits.frame_bytes)`);
    }
    return length;
  }
}

export interface EventStreamMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

function messageOf(bytes: Uint8Array): EventStreamMessage {
  try {
    const { headers, body } = codec.decode(bytes);
    const texts: Record<string, string> = {};
    for (const [name, { type, value }] of Object.entries(headers)) {
      if (type === 'string') texts[name] = value as string;
    }
    return { headers: texts, body };
  } catch (thrown) {
    throw new BrokenEventStream((thrown as Error).message);
  }
}

// As the vendor writes it; any other order is parsed.
const FIRST_TYPE = /^\{"type":"([a-z_]{1,60})"/;

/**
 * The SSE text of a message; '' for one without meaning. `isLast`: an exception, behind which nothing counts.
 * @throws BrokenEventStream for an event that is not what Bedrock sends
 */
export function sseOfMessage({ headers, body }: EventStreamMessage): {
  readonly text: string;
  readonly isLast: boolean;
} {
  const kind = headers[':message-type'];
  const payload = tryParse(decoder.decode(body));
  if (kind === 'exception' || kind === 'error') {
    const code = headers[':exception-type'] ?? headers[':error-code'] ?? 'unknown';
    const error = {
      code: exceptionName(code.slice(0, 100)),
      message: errorMessage(payload) ?? headers[':error-message'] ?? code,
    };
    const text = sseEvent('error', JSON.stringify(messagesError(error, undefined)));
    return { text, isLast: true };
  }
  if (headers[':event-type'] !== 'chunk') return { text: '', isLast: false };
  const bytes = isObject(payload) ? payload.bytes : undefined;
  if (typeof bytes !== 'string') throw new BrokenEventStream('a chunk without bytes');
  const data = Buffer.from(bytes, 'base64').toString('utf8');
  const type = FIRST_TYPE.exec(data)?.[1] ?? typeIn(tryParse(data));
  return { text: type === undefined ? '' : sseEvent(type, data), isLast: false };
}

const errorMessage = (payload: Json | undefined): string | undefined =>
  isObject(payload) && typeof payload.message === 'string' ? payload.message : undefined;

function typeIn(event: Json | undefined): string | undefined {
  if (!isObject(event)) throw new BrokenEventStream('a chunk that is no JSON object');
  return typeof event.type === 'string' ? event.type.replace(/[\r\n]/g, ' ') : undefined;
}

/** The body of a streamed answer as server-sent events. */
export class EventStreamBody implements ResponseBody {
  readonly #reader: MessageReader;
  #over = false;
  #slow = false;

  constructor(
    private readonly body: ResponseBody,
    mostBytes: number,
  ) {
    this.#reader = new MessageReader(mostBytes);
  }

  read(): readonly Uint8Array[] | undefined | Promise<readonly Uint8Array[] | undefined> {
    if (this.#over) return undefined;
    const chunks = this.body.read();
    return chunks instanceof Promise
      ? chunks.then((came) => this.#converted(came))
      : this.#converted(chunks);
  }

  #converted(chunks: readonly Uint8Array[] | undefined): readonly Uint8Array[] | undefined {
    if (chunks === undefined) {
      this.#reader.end();
      return undefined;
    }
    let out = '';
    for (const chunk of chunks) {
      for (const message of this.#reader.push(chunk)) {
        const { text, isLast } = sseOfMessage(message);
        out += text;
        if (!isLast) continue;
        this.cancel();
        return [encoder.encode(out)];
      }
    }
    return out === '' ? [] : [encoder.encode(out)];
  }

  async pipe(sink: ChunkSink): Promise<void> {
    for (let batch = await this.read(); batch !== undefined; batch = await this.read()) {
      for (const chunk of batch) {
        const writing = sink.write(chunk);
        if (writing === undefined) continue;
        this.#slow = true;
        await writing;
        this.#slow = false;
      }
    }
  }

  readAll(most = Number.POSITIVE_INFINITY): Promise<Uint8Array> {
    return collect(this, most);
  }

  takeActivity(): boolean {
    return this.body.takeActivity() || this.#slow;
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.body.cancel();
  }
}
