/** An answer that has come whole when it begins goes out as one body: no stream to be set up, and one write in place of two. */

import { COPIED_BYTES, lateBody } from '../../lib/http/late-body.ts';
import { tickEnd } from '../../lib/loop/tick-end.ts';
import type { ByteSink } from './client-lane.ts';
import type { ClientStream } from './client-stream.ts';
import { concat, type Output } from './pipeline.ts';

/** Keeps what is written until there is a client to write it to; beyond {@link COPIED_BYTES}, writers wait for that. */
class EarlySink implements ByteSink {
  readonly #parts: Output[] = [];
  #held = 0;
  /** Lets the writers go on that wait. */
  #full: PromiseWithResolvers<unknown> | undefined;
  #client: ByteSink | undefined;
  #isClosed = false;

  write(chunk: Output): unknown {
    if (this.#client !== undefined) return this.#client.write(chunk);
    this.#parts.push(chunk);
    this.#held += chunk.length;
    if (this.#held <= COPIED_BYTES) return undefined;
    this.#full ??= Promise.withResolvers();
    return this.#full.promise;
  }

  flush(): unknown {
    return this.#client?.flush();
  }

  close(): void {
    this.#isClosed = true;
    this.#client?.close();
  }

  /** Everything, where that is all; undefined: more is to come. */
  get whole(): Output | undefined {
    return this.#isClosed ? concat(this.#parts) : undefined;
  }

  connect(client: ByteSink): void {
    this.#client = client;
    let slow: unknown;
    for (const part of this.#parts) {
      const written = client.write(part);
      if (!(written instanceof Promise)) continue;
      // It rejects when the client goes. Nobody may be waiting for it then.
      written.catch(() => {});
      slow = written;
    }
    client.flush();
    this.#full?.resolve(slow);
    if (this.#isClosed) client.close();
  }
}

/**
 * The body of an answer whose vendor has said everything: in one piece where it is written by the end of this turn,
 * else (a tool runs, something must be stored, it fails) a stream that goes on from there. Never rejects.
 */
export async function earlyBody(stream: ClientStream): Promise<ReturnType<typeof lateBody>> {
  const sink = new EarlySink();
  const writing = stream.pull(sink);
  // The stream below rejects with it, which resets the connection.
  writing.catch(() => {});
  await tickEnd();
  const { whole } = sink;
  if (whole !== undefined) return lateBody(whole);
  const rest = {
    type: 'direct',
    pull(client: ByteSink): Promise<void> {
      sink.connect(client);
      return writing;
    },
    cancel: () => stream.cancel(),
  };
  return new ReadableStream<Uint8Array>(rest as never);
}
