/** A client that waits for its answer hears of it in time. */

import { expect, test } from 'bun:test';
import { ClientStream } from '../../../src/gateway/stream/client-stream.ts';

test('a stream that opens before its answer begins with a sign of life', async () => {
  const written: unknown[] = [];
  const abort = new AbortController();
  const hour = 3_600_000;
  const stream = new ClientStream({
    opened: new Promise(() => {}),
    ping: () => ': ping\n\n',
    fail: () => '',
    followUp: () => Promise.reject(new Error('no other hop')),
    keepAliveMs: hour,
    signal: abort.signal,
    onFirstByte: () => {},
    onEnd: () => {},
  });
  void stream.pull({
    write: (chunk: unknown) => {
      written.push(chunk);
      return 1;
    },
    flush: () => {},
    close: () => {},
  } as never);
  expect(written).toEqual([': ping\n\n']);
  stream.gone();
});
