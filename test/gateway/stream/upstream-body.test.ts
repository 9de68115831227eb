/** Whose silence it is: an upstream that says nothing is given up, a client that reads slowly is waited for. */

import { describe, expect, test } from 'bun:test';
import { UpstreamBody } from '../../../src/gateway/stream/upstream-body.ts';
import { Abort } from '../../../src/lib/loop/abort.ts';
import { streamSource } from '../../../src/upstream/fetch-transport.ts';
import { ResponseStream } from '../../../src/upstream/http1/response-stream.ts';
import type { ResponseBody } from '../../../src/upstream/transport.ts';

const IDLE_MS = 500;
const HEAD = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

interface Upstream {
  readonly body: ResponseBody;
  /** Says one chunk. */
  say(): void;
  end(): void;
}

/** An answer as a connection's bytes become one. */
function connected(abort: Abort): Upstream {
  const line = { pause() {}, resume() {}, drop() {} };
  const reply = new ResponseStream(line, { resolve() {}, reject() {} });
  abort.listen({ onAbort: (reason) => reply.fail(reason) });
  reply.receive(Buffer.from(HEAD));
  return {
    body: reply,
    say: () => reply.receive(Buffer.from('1\r\nx\r\n')),
    end: () => reply.receive(Buffer.from('0\r\n\r\n')),
  };
}

/** A web stream, as fetch gives one. */
function fetched(abort: Abort): Upstream {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  const stream = new ReadableStream<Uint8Array>({
    start(one) {
      controller = one;
    },
  });
  abort.listen({ onAbort: (reason) => controller.error(reason) });
  return {
    body: streamSource(() => stream),
    say: () => controller.enqueue(new Uint8Array([120])),
    end: () => controller.close(),
  };
}

describe.each([
  ['a connection of its own', connected],
  ['fetch', fetched],
])('by %s', (_, open) => {
  function source(recorded = false) {
    const abort = new Abort();
    const upstream = open(abort);
    let released = 0;
    const release = () => {
      released++;
    };
    let seen = 0;
    const recording = { chunk: () => seen++, end() {} };
    const bytes = new UpstreamBody(upstream.body, {
      provider: 'up',
      idleMs: IDLE_MS,
      abort,
      call: { release },
      ...(recorded ? { recording: recording as never } : {}),
    });
    return { upstream, bytes, released: () => released, seen: () => seen };
  }

  test.concurrent.each([false, true])(
    'a client that takes longer than the upstream may be silent costs it nothing (recorded: %p)',
    async (recorded) => {
      const { upstream, bytes, released, seen } = source(recorded);
      let taken = 0;
      const flowing = bytes.pipe({
        write: async () => {
          taken++;
          await Bun.sleep(IDLE_MS * 3);
        },
      });
      upstream.say();
      await Bun.sleep(IDLE_MS);
      upstream.say();
      upstream.end();
      await flowing;
      expect([taken, released(), seen()]).toEqual([2, 1, recorded ? 2 : 0]);
    },
  );

  test.concurrent('an upstream that goes on saying something is not silent, however long it takes', async () => {
    const { upstream, bytes } = source();
    let taken = 0;
    const flowing = bytes.pipe({
      write: () => {
        taken++;
        return undefined;
      },
    });
    for (let i = 0; i < 15; i++) {
      upstream.say();
      await Bun.sleep(IDLE_MS / 8);
    }
    upstream.end();
    await flowing;
    expect(taken).toBe(15);
  });

  test.concurrent('an upstream that falls silent is given up, in words, and its slot is given back', async () => {
    const { upstream, bytes, released } = source();
    const failure = bytes.pipe({ write: () => undefined });
    upstream.say();
    await expect(failure).rejects.toMatchObject({
      kind: 'timeout',
      message: 'Provider up sent nothing for 1 s.',
    });
    expect(released()).toBe(1);
  });

  test.concurrent('a silence that begins when the client is done at last is the upstream’s', async () => {
    const { upstream, bytes } = source();
    const failure = bytes.pipe({ write: () => Bun.sleep(IDLE_MS * 2) });
    upstream.say();
    await expect(failure).rejects.toMatchObject({ kind: 'timeout' });
  });
});
