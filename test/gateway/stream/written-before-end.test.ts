/** What a try cost is written down before the client has the end of its stream: a kill between the two would lose it. */

import { expect, test } from 'bun:test';
import { ClientStream } from '../../../src/gateway/stream/client-stream.ts';

test.each([
  ['is whole', true, undefined],
  ['has another hop to come', true, { run: () => Promise.reject(new Error('not run')) }],
  ['is cut', false, undefined],
] as const)(
  'a stream that %s ends after the microtask in which the journal writes',
  async (_, complete, continuation) => {
    const order: string[] = [];
    const digest = { complete, semantic: true, answered: true };
    const pipeline = {
      digest,
      continuation,
      terminalBytes: 0,
      allowsKeepAlive: true,
      end: () => '',
      fail: () => '',
      ping: () => '',
    };
    const opened = {
      kind: 'stream',
      target: { provider: 'up' },
      same: true,
      pipeline,
      first: [],
      source: { pipe: async () => {} },
      // As the journal does: what is appended is written in a microtask.
      account: { end: () => queueMicrotask(() => order.push('written')) },
    };
    const ended = new ClientStream({
      opened: opened as never,
      ping: () => '',
      fail: () => '',
      followUp: () => Promise.reject(new Error('no other hop')),
      keepAliveMs: 3_600_000,
      signal: new AbortController().signal,
      onFirstByte: () => {},
      onEnd: () => order.push('over'),
    }).pull({ write: () => 1, flush: () => {}, close: () => order.push('closed') } as never);
    await ended.catch(() => {});
    expect(order.slice(0, 2)).toEqual(['written', 'over']);
  },
);
