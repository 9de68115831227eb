/** HTTP/1.1 answers read from bytes: whatever the cuts, the same answer; whatever is none, an error. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { MalformedReply, ResponseParser } from '../../../src/upstream/http1/response-parser.ts';
import { bytewise, everySplit, whole } from '../../support/chunkings.ts';

interface Read {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly done: boolean;
  readonly reusable: boolean;
}

/** Fed with copies, as the parser may write into what it is given. */
function read(pieces: readonly Uint8Array[], close = false): Read {
  const parser = new ResponseParser();
  let body = '';
  for (const piece of pieces) body += parser.push(Buffer.from(piece))?.toString('latin1') ?? '';
  if (parser.malformed !== undefined) throw parser.malformed;
  if (close) parser.closed();
  return {
    status: parser.head?.status,
    headers: Object.fromEntries(parser.head?.headers ?? []),
    body,
    done: parser.done,
    reusable: parser.reusable,
  };
}

const bytesOf = (text: string) => Buffer.from(text, 'latin1');

const GOOD: readonly (readonly [name: string, text: string, expected: Partial<Read>])[] = [
  [
    'a length',
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello',
    {
      status: 200,
      body: 'hello',
      done: true,
      reusable: true,
      headers: { 'content-type': 'application/json', 'content-length': '5' },
    },
  ],
  [
    'chunks',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\n\r\n',
    { body: 'hello 0123456789', done: true, reusable: true },
  ],
  [
    'chunk extensions, trailers, capital digits and leading zeros',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n005;a=b;c="d"\r\nhello\r\n0C \r\n world again\r\n0;x\r\nDigest: x\r\nOther: y\r\n\r\n',
    { body: 'hello world again', done: true, reusable: true },
  ],
  [
    'an empty body by length',
    'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
    { body: '', done: true, reusable: true },
  ],
  [
    'an empty body by chunks',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    { body: '', done: true, reusable: true },
  ],
  [
    'no body by its status, whatever the length says',
    'HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\n\r\n',
    { status: 304, body: '', done: true, reusable: true },
  ],
  ['no content', 'HTTP/1.1 204\r\n\r\n', { status: 204, done: true, reusable: true }],
  [
    'informational answers first',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok',
    { status: 201, body: 'ok', done: true, headers: { 'content-length': '2' } },
  ],
  [
    'lines that end without CR',
    'HTTP/1.1 200 OK\ncontent-type: text/plain\ntransfer-encoding: chunked\n\n3\nabc\n0\n\n',
    { body: 'abc', done: true, reusable: true },
  ],
  [
    'folded header lines',
    'HTTP/1.1 200 OK\r\nx-long: one\r\n  two\r\n\tthree\r\ncontent-length: 0\r\n\r\n',
    { headers: { 'x-long': 'one two three', 'content-length': '0' }, done: true },
  ],
  [
    'the same length twice',
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok',
    { body: 'ok', done: true, headers: { 'content-length': '2' } },
  ],
  [
    'connection: close',
    'HTTP/1.1 200 OK\r\nConnection: Close\r\ncontent-length: 2\r\n\r\nok',
    { body: 'ok', done: true, reusable: false },
  ],
  [
    'HTTP/1.0 without keep-alive',
    'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok',
    { body: 'ok', done: true, reusable: false },
  ],
  [
    'HTTP/1.0 with keep-alive',
    'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok',
    { body: 'ok', done: true, reusable: true },
  ],
  [
    'a length beside chunks: read once, and never again from there',
    'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    { body: 'hello', done: true, reusable: false, headers: { 'transfer-encoding': 'chunked' } },
  ],
  [
    'a header beyond ASCII',
    'HTTP/1.1 200 OK\r\nx-name: caf\xe9\r\ncontent-length: 0\r\n\r\n',
    { headers: { 'x-name': 'caf\xe9', 'content-length': '0' }, done: true },
  ],
];

test('a server that speaks HTTP/2 without TLS is named', () => {
  const settings = bytesOf('\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x80');
  expect(() => read([settings])).toThrow('HTTP/2 without TLS');
});

describe('what a vendor answers', () => {
  for (const [name, text, expected] of GOOD) {
    test(`${name}: the same at every cut`, () => {
      const bytes = bytesOf(text);
      const reference = read([bytes]);
      expect(reference).toMatchObject(expected);
      for (const chunking of [whole, bytewise, ...everySplit(bytes)]) {
        expect({ at: chunking.name, ...read(chunking.cut(bytes)) }).toEqual({
          at: chunking.name,
          ...reference,
        });
      }
    });
  }

  test('a body without a length ends where the connection does, and only there', () => {
    const bytes = bytesOf('HTTP/1.1 200 OK\r\n\r\nall of this');
    for (const chunking of [whole, bytewise, ...everySplit(bytes)]) {
      expect(read(chunking.cut(bytes))).toMatchObject({ body: 'all of this', done: false });
      const closed = read(chunking.cut(bytes), true);
      expect(closed).toMatchObject({ body: 'all of this', done: true, reusable: false });
    }
  });

  test('a close in the middle of anything else is no end', () => {
    for (const [name, text, { done }] of GOOD) {
      if (done !== true) continue;
      const bytes = bytesOf(text);
      for (let at = 0; at < bytes.length; at++) {
        const parser = new ResponseParser();
        parser.push(Buffer.from(bytes.subarray(0, at)));
        expect({ name, at, ended: parser.closed() }).toEqual({ name, at, ended: false });
      }
    }
  });

  test('a length beside chunks is none', () => {
    const parser = new ResponseParser();
    parser.push(bytesOf(`${CHUNKED.trimEnd()}\r\ncontent-length: 3\r\n\r\n`));
    expect(parser.head?.headers.has('transfer-encoding')).toBe(true);
    expect(parser.head?.headers.has('content-length')).toBe(false);
  });

  test('bytes behind the end are not mixed into it, and cost the connection', () => {
    for (const [name, text, { body, done }] of GOOD) {
      if (done !== true) continue;
      const bytes = bytesOf(`${text}HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad`);
      for (const chunking of [whole, bytewise]) {
        const found = read(chunking.cut(bytes));
        expect({ name, reusable: found.reusable, done: found.done }).toEqual({
          name,
          reusable: false,
          done: true,
        });
        if (body !== undefined) expect(found.body).toBe(body);
      }
    }
  });
});

const HEAD = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${HEAD}transfer-encoding: chunked\r\n\r\n`;
const BAD: readonly (readonly [name: string, text: string])[] = [
  ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
  ['a TLS alert', '\x15\x03\x01\x00\x02\x02\x46\n\n'],
  ['HTTP/2', 'HTTP/2 200\r\n\r\n'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['a status that there is not', 'HTTP/1.1 999 OK\r\n\r\n'],
  ['a protocol that was not asked for', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'],
  ['a header line without a colon', `${HEAD}content-type\r\n\r\n`],
  ['a header without a name', `${HEAD}: x\r\n\r\n`],
  ['a header name with a space in it', `${HEAD}content type: x\r\n\r\n`],
  ['a header value with a NUL', `${HEAD}x: a\x00b\r\n\r\n`],
  ['a length that is no number', `${HEAD}content-length: 5x\r\n\r\nhello`],
  ['a length below zero', `${HEAD}content-length: -1\r\n\r\n`],
  ['two lengths', `${HEAD}content-length: 5\r\ncontent-length: 6\r\n\r\nhello!`],
  ['an unknown transfer encoding', `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n`],
  ['a chunk without a size', `${CHUNKED}\r\nhello`],
  ['a chunk whose size is no number', `${CHUNKED}5g\r\nhello`],
  ['a chunk larger than anything', `${CHUNKED}ffffffffffffffff\r\n`],
  ['a chunk longer than its size', `${CHUNKED}3\r\nhello\r\n`],
];

describe('what is no answer', () => {
  for (const [name, text] of BAD) {
    test(`${name}: refused at every cut`, () => {
      const bytes = bytesOf(text);
      for (const chunking of [whole, bytewise, ...everySplit(bytes)]) {
        expect(() => read(chunking.cut(bytes))).toThrow(MalformedReply);
      }
    });
  }

  const endless = (start: string, more: string) => () => {
    const parser = new ResponseParser();
    parser.push(bytesOf(start));
    for (let i = 0; i < 10_000 && parser.malformed === undefined; i++) parser.push(bytesOf(more));
    if (parser.malformed !== undefined) throw parser.malformed;
  };
  test('headers without end are not collected for ever', () => {
    expect(endless(HEAD, 'x-more: and more and more\r\n')).toThrow(MalformedReply);
  });
  test('a chunk extension without end is not waited out', () => {
    expect(endless(`${CHUNKED}5;`, 'a=b;c=d;')).toThrow(MalformedReply);
  });
  test('trailers without end are not waited out', () => {
    expect(endless(`${CHUNKED}0\r\n`, 'x-more: and more\r\n')).toThrow(MalformedReply);
  });

  test('whatever bytes come: an answer, a wait for more, or a refusal', () => {
    const piece = fc.oneof(
      fc.constantFrom(HEAD, CHUNKED, '\r\n', '\n', '0', '5\r\n', 'content-length: 3\r\n', ':'),
      fc.string({ maxLength: 12, unit: 'binary-ascii' }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        try {
          read(pieces.map(bytesOf));
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(MalformedReply);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

test('fields in another order, or by other names, than the reply before had them are read as they are', () => {
  const names = ['content-type', 'content-typo', 'Content-Type', 'x-a', 'x-ab', 'x', 'date'];
  const field = fc.tuple(fc.constantFrom(...names), fc.constantFrom('1', 'a:b', '', 'x-a: 2'));
  fc.assert(
    fc.property(fc.array(fc.array(field, { maxLength: 6 }), { maxLength: 6 }), (replies) => {
      for (const fields of replies) {
        const parser = new ResponseParser();
        const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
        parser.push(bytesOf(`HTTP/1.1 200 OK\r\n${lines}content-length: 0\r\n\r\n`));
        const wanted = new Headers([...fields, ['content-length', '0']]);
        for (const name of names) {
          expect(parser.head?.headers.get(name)).toBe(wanted.get(name));
        }
      }
    }),
    { numRuns: 500 },
  );
});

test('any body in any chunks, cut anywhere, comes out as it went in', () => {
  const chunk = fc.uint8Array({ minLength: 1, maxLength: 300 });
  const run = fc.tuple(
    fc.array(chunk, { maxLength: 12 }),
    fc.array(fc.nat(4000), { maxLength: 8 }),
  );
  fc.assert(
    fc.property(run, ([chunks, cuts]) => {
      const parts = chunks.flatMap((bytes) => [
        bytesOf(`${bytes.length.toString(16)}\r\n`),
        Buffer.from(bytes),
        bytesOf('\r\n'),
      ]);
      const sent = Buffer.concat([bytesOf(CHUNKED), ...parts, bytesOf('0\r\n\r\n')]);
      const ends = [...cuts.map((cut) => cut % sent.length), sent.length].sort((a, b) => a - b);
      const pieces = ends.map((end, i) => sent.subarray(ends[i - 1] ?? 0, end));
      const parser = new ResponseParser();
      const got = pieces.flatMap((piece) =>
        piece.length === 0 ? [] : [parser.push(Buffer.from(piece)) ?? Buffer.alloc(0)],
      );
      expect(Buffer.concat(got).equals(Buffer.concat(chunks))).toBe(true);
      expect([parser.done, parser.reusable]).toEqual([true, true]);
    }),
  );
});
