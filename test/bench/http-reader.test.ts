/** The load generator's HTTP reader: at any chunk border, it loses no byte and counts none twice. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { createReplyReader } from '../../bench/http-reader.ts';
import { burst, httpChunk, json, LAST_CHUNK } from '../../bench/replies.ts';

/** Feeds bytes cut at the given offsets; returns the bodies and how each answer ended. */
function read(bytes: Buffer, cuts: readonly number[] = []) {
  const answers: { status: number; body: string; keepAlive: boolean }[] = [];
  let status = 0;
  let body = '';
  const reader = createReplyReader({
    head(code) {
      status = code;
    },
    body(chunk, start, end) {
      body += chunk.toString('latin1', start, end);
    },
    end(keepAlive) {
      answers.push({ status, body, keepAlive });
      body = '';
    },
  });
  let from = 0;
  for (const cut of [...new Set(cuts)].sort((a, b) => a - b)) {
    if (cut <= from || cut >= bytes.length) continue;
    reader.push(bytes.subarray(from, cut));
    from = cut;
  }
  reader.push(bytes.subarray(from));
  return { answers, reader, rest: () => body };
}

describe('the reply reader', () => {
  test('the reader gives the same answers wherever the bytes are cut', () => {
    const stream = burst('messages', 'm', 3);
    const both = Buffer.concat([stream, json('chat', 'm'), stream]);
    const expected = read(both).answers;
    expect(expected.length).toBe(3);
    expect(expected[0]!.body.startsWith('event: message_start\n')).toBe(true);
    expect(expected[0]!.body.endsWith('{"type":"message_stop"}\n\n')).toBe(true);
    expect(JSON.parse(expected[1]!.body).object).toBe('chat.completion');
    expect(expected[2]).toEqual(expected[0]!);
    fc.assert(
      fc.property(fc.array(fc.nat(both.length - 1), { maxLength: 40 }), (cuts) => {
        expect(read(both, cuts).answers).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });

  test('the reader does not take a chunk extension or a trailer for body', () => {
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
    const bytes = Buffer.from(`${head}5;a=ff\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n`);
    const cuts = [...bytes.keys()];
    expect(read(bytes, cuts).answers).toEqual([{ status: 200, body: 'hello', keepAlive: true }]);
  });

  test('the reader skips 100 Continue and reports the status of a failure', () => {
    const bytes = Buffer.from(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 502 Bad\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno',
    );
    expect(read(bytes).answers).toEqual([{ status: 502, body: 'no', keepAlive: false }]);
  });

  test('an answer without a length ends with the connection, and a cut chunked one does not end', () => {
    const open = read(Buffer.from('HTTP/1.1 200 OK\r\n\r\nall there is'));
    expect(open.answers).toEqual([]);
    expect(open.reader.closed()).toBe(true);
    expect(open.answers).toEqual([{ status: 200, body: 'all there is', keepAlive: false }]);

    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    const cut = read(Buffer.from(head + httpChunk('part')));
    expect(cut.reader.closed()).toBe(false);
    expect(cut.answers).toEqual([]);
    const ended = read(Buffer.from(head + httpChunk('part') + LAST_CHUNK));
    expect(ended.answers.length).toBe(1);
  });

  test('the reader refuses what is not HTTP instead of counting it', () => {
    expect(() => read(Buffer.from('SSH-2.0-OpenSSH\r\n\r\n'))).toThrow('not HTTP');
  });
});
