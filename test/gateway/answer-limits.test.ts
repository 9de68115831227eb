/** How much of an upstream's answer is read, and what the client hears instead: in all protocols, streamed and whole. */

import { afterEach, describe, expect, test } from 'bun:test';
import zlib from 'node:zlib';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';
import {
  beginning,
  head,
  type RawUpstream,
  rawUpstream,
  rawWorld,
  saying,
  type Wire,
  whole,
} from './raw-upstream.ts';
import { PROTOCOLS } from './scripted.ts';

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];
const KB = 1024;
const ANSWER = 512 * KB;
const FRAME = 256 * KB;
// What lies in the buffers of two sockets, and in the hands of those who wait.
const UNDER_WAY = 12 * 1024 * KB;

const open: RawUpstream[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

function upstreamWith(answer: (wire: Wire, number: number) => unknown): RawUpstream {
  const upstream = rawUpstream(answer);
  open.push(upstream);
  return upstream;
}

const worldOf = (url: string, vendor: ProtocolName, more = '') =>
  rawWorld(`
providers: { up: { protocol: ${vendor}, base_url: "${url}", models: ["*"], keys: [key-of-the-provider] } }
retry: { attempts: 2, base_delay: 0 }
limits: { answer_bytes: ${ANSWER}, frame_bytes: ${FRAME} }
${more}`);

/** Writes this again and again until the reader stops. */
async function endlessly(wire: Wire, first: string, piece: Uint8Array | string) {
  if (!(await wire.write(first))) return;
  while (await wire.write(piece));
}

async function said(wire: Wire, text: string) {
  await wire.write(text);
  wire.end();
}

const BLANKS = Buffer.alloc(64 * KB, 'x');
const COMMENTS = ': nothing to say\n\n'.repeat(4000);
const EMPTY = 'data:\n\n'.repeat(8000);

/** Cases that never end: the name, the head with what stands behind it, what follows, what the error names. */
const CASES: readonly (readonly [string, boolean, string, string | Uint8Array, string])[] = [
  ['a JSON without end', false, `${head('application/json')}{"a":"`, BLANKS, 'limits.answer_bytes'],
  ['a frame without end', true, `${head('text/event-stream')}data: `, BLANKS, 'limits.frame_bytes'],
  ['comments', true, head('text/event-stream'), COMMENTS, 'limits.frame_bytes'],
  ['empty frames', true, head('text/event-stream'), EMPTY, 'limits.frame_bytes'],
  [
    'a stream that was not asked for',
    false,
    head('text/event-stream'),
    COMMENTS,
    'limits.answer_bytes',
  ],
];

for (const vendor of NAMES) {
  for (const client of NAMES) {
    describe(`${client} → ${vendor}`, () => {
      test.each(CASES)('%s ends where its limit is', async (_, stream, first, piece, limit) => {
        const upstream = upstreamWith((wire) => endlessly(wire, first, piece));
        const seen = await worldOf(upstream.url, vendor).ask(client, stream);
        expect(seen.status).toBe(502);
        expect(seen.text).toContain(limit);
        expect(seen.headers.get('x-should-retry')).toBe('false');
        expect(JSON.parse(seen.text).error.message).toContain('Provider up sent');
        expect(upstream.asked).toBe(1);
        expect(upstream.sent).toBeLessThan(UNDER_WAY);
      });

      test('an event without end behind the first words is an error event', async () => {
        const first = `${head('text/event-stream')}${beginning(vendor, 'Well')}data: `;
        const upstream = upstreamWith((wire) => endlessly(wire, first, BLANKS));
        const seen = await worldOf(upstream.url, vendor).ask(client, true);
        expect([seen.status, seen.reset]).toEqual([200, true]);
        expect(seen.text).toContain('Well');
        expect(seen.text.slice(-4000)).toContain('limits.frame_bytes');
        expect(upstream.sent).toBeLessThan(UNDER_WAY);
      });

      test('comments without end behind the first words are an error event', async () => {
        const first = head('text/event-stream') + beginning(vendor, 'Well');
        const upstream = upstreamWith((wire) => endlessly(wire, first, COMMENTS));
        const seen = await worldOf(upstream.url, vendor).ask(client, true);
        expect([seen.status, seen.reset]).toEqual([200, true]);
        expect(seen.text.slice(-4000)).toContain('limits.frame_bytes');
      });

      test('another target answers in place of one that does not end', async () => {
        for (const stream of [true, false]) {
          const bad = upstreamWith((wire) =>
            endlessly(
              wire,
              stream ? `${head('text/event-stream')}data: ` : head('application/json'),
              BLANKS,
            ),
          );
          const good = upstreamWith((wire) =>
            said(wire, saying(vendor, stream, 'From the second.')),
          );
          const world = rawWorld(`
providers:
  bad: { protocol: ${vendor}, base_url: "${bad.url}", keys: [k1234567] }
  good: { protocol: ${vendor}, base_url: "${good.url}", keys: [k1234567] }
routes: [{ to: [bad/m, good/m] }]
limits: { answer_bytes: ${ANSWER}, frame_bytes: ${FRAME} }`);
          const seen = await world.ask(client, stream);
          expect(seen.status).toBe(200);
          expect(seen.text).toContain('From the second.');
          expect(bad.asked).toBe(1);
        }
      });
    });
  }
}

describe('packed answers', () => {
  const bomb = (body: Buffer, encoding: string, type: string) => {
    const packed = {
      gzip: Bun.gzipSync,
      deflate: pack('deflateSync'),
      br: (bytes: Uint8Array) =>
        zlib.brotliCompressSync(bytes, {
          params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 },
        }) as Uint8Array<ArrayBuffer>,
      zstd: pack('zstdCompressSync'),
    };
    const one = (bytes: Uint8Array, name: string) =>
      packed[name as 'gzip'](bytes as Uint8Array<ArrayBuffer>);
    const bytes = encoding.split(', ').reduce<Uint8Array>(one, body);
    return { head: head(type, `content-encoding: ${encoding}\r\n`), bytes };
  };
  const pack = (name: 'deflateSync' | 'zstdCompressSync') => (bytes: Uint8Array) =>
    zlib[name](bytes) as Uint8Array<ArrayBuffer>;
  const zeros = Buffer.alloc(64 * 1024 * KB, ' ');
  const comments = Buffer.from(COMMENTS.repeat(600));

  test.each(['gzip', 'deflate', 'br', 'zstd', 'gzip, gzip'])(
    '%s: unpacked no further than the limit',
    async (encoding) => {
      for (const stream of [true, false]) {
        const { head: first, bytes } = bomb(
          stream ? comments : zeros,
          encoding,
          stream ? 'text/event-stream' : 'application/json',
        );
        const upstream = upstreamWith(async (wire) => {
          await wire.write(first);
          await wire.write(bytes);
          wire.end();
        });
        Bun.gc(true);
        const before = process.memoryUsage().rss;
        const seen = await worldOf(upstream.url, 'openai-chat').ask('openai-chat', stream);
        expect(seen.status).toBe(502);
        expect(seen.text).toContain(stream ? 'limits.frame_bytes' : 'limits.answer_bytes');
        expect(process.memoryUsage().rss - before).toBeLessThan(48 * 1024 * KB);
      }
    },
  );

  test.each(['gzip', 'deflate', 'br', 'zstd', 'gzip, gzip', 'identity'])(
    '%s: what fits is read, and told plain',
    async (encoding) => {
      for (const stream of [true, false]) {
        const text = saying('openai-chat', stream, 'Unpacked.');
        const body = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4));
        const packed =
          encoding === 'identity'
            ? {
                head: head(
                  stream ? 'text/event-stream' : 'application/json',
                  'content-encoding: identity\r\n',
                ),
                bytes: body,
              }
            : bomb(body, encoding, stream ? 'text/event-stream' : 'application/json');
        const upstream = upstreamWith(async (wire) => {
          await wire.write(packed.head);
          await wire.write(packed.bytes);
          wire.end();
        });
        const seen = await worldOf(upstream.url, 'openai-chat').ask('openai-chat', stream);
        expect([seen.status, seen.headers.get('content-encoding')]).toEqual([200, null]);
        expect(seen.text).toContain('Unpacked.');
      }
    },
  );

  test("deflate without zlib's frame is no answer, streamed or not", async () => {
    for (const stream of [true, false]) {
      const body = saying('openai-chat', stream, 'Unpacked.').split('\r\n\r\n')[1]!;
      const type = stream ? 'text/event-stream' : 'application/json';
      const upstream = upstreamWith(async (wire) => {
        await wire.write(head(type, 'content-encoding: deflate\r\n'));
        await wire.write(zlib.deflateRawSync(body));
        wire.end();
      });
      const seen = await worldOf(upstream.url, 'openai-chat').ask('openai-chat', stream);
      expect(seen.status).toBe(502);
      expect(seen.text).not.toContain('Unpacked.');
    }
  });

  test('an unknown encoding of a plain body is not told to the client', async () => {
    const body = saying('openai-chat', false, 'Plain.').split('\r\n\r\n')[1]!;
    const upstream = upstreamWith((wire) =>
      wire.write(whole(200, body, 'content-encoding: foo\r\n')),
    );
    const seen = await worldOf(upstream.url, 'openai-chat').ask('openai-chat', false);
    expect([seen.status, seen.headers.get('content-encoding')]).toEqual([200, null]);
    expect(seen.text).toBe(body);
  });

  test('what cannot be unpacked is said so', async () => {
    const upstream = upstreamWith((wire) =>
      wire.write(whole(200, '{"no":"gzip"}', 'content-encoding: gzip\r\n')),
    );
    const seen = await worldOf(upstream.url, 'openai-chat').ask('openai-chat', false);
    expect(seen.status).toBe(502);
    expect(seen.text).toContain('cannot be unpacked (gzip)');
  });
});

test('an answer that says that it is too long is not read', async () => {
  const first = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999999999\r\n\r\n`;
  const upstream = upstreamWith((wire) => wire.write(first));
  const seen = await worldOf(upstream.url, 'openai-chat').ask('openai-chat', false);
  expect([seen.status, upstream.asked]).toEqual([502, 1]);
  expect(seen.text).toContain('limits.answer_bytes');
});

describe('heads', () => {
  const lines = (count: number) =>
    Array.from({ length: count }, (_, i) => `x-${i}: ${i}\r\n`).join('');
  const HEADS: readonly (readonly [string, string, string])[] = [
    ['5,000 headers', `HTTP/1.1 200 OK\r\n${lines(5000)}`, 'limits.header'],
    ['300 headers', `HTTP/1.1 200 OK\r\n${lines(300)}\r\n`, 'limits.headers'],
    ['one long header', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100 * KB)}`, 'limits.header_bytes'],
    [
      'folding without end',
      `HTTP/1.1 200 OK\r\nx: y${'\r\n y'.repeat(30_000)}`,
      'limits.header_bytes',
    ],
    [
      'informational answers',
      'HTTP/1.1 103 Early\r\nlink: x\r\n\r\n'.repeat(4000),
      'limits.header_bytes',
    ],
  ];
  test.each(HEADS)('%s are refused', async (_, bytes, limit) => {
    const upstream = upstreamWith((wire) => wire.write(bytes));
    const seen = await worldOf(upstream.url, 'openai-chat').ask('openai-chat', false);
    expect(seen.status).toBe(502);
    expect(seen.text).toContain(limit);
    expect(upstream.asked).toBe(1);
  });
});

test('a count of tokens, an error and its headers are read no further than they need be', async () => {
  const upstream = upstreamWith((wire) => endlessly(wire, head('application/json'), BLANKS));
  const counted = await worldOf(upstream.url, 'anthropic-messages').count();
  expect(counted.headers.get('x-hopgate-notes')).toContain('tokens_estimated');
  const failing = upstreamWith((wire) =>
    endlessly(wire, 'HTTP/1.1 400 No\r\ncontent-type: application/json\r\n\r\n', BLANKS),
  );
  const seen = await worldOf(failing.url, 'openai-chat').ask('openai-chat', true);
  expect(seen.status).toBe(400);
  expect(JSON.parse(seen.text).error.message).toContain('HTTP 400');
  expect(upstream.sent + failing.sent).toBeLessThan(2 * UNDER_WAY);
});

describe('comments that never end', () => {
  const times = 'timeouts: { first_byte: 0.2, idle: 0.2 }';
  const dribble = async (wire: Wire, first: string, piece: string) => {
    if (!(await wire.write(first))) return;
    while (await wire.write(piece)) await Bun.sleep(20);
  };
  const PIECES = [
    ': OPENROUTER PROCESSING\n\n',
    'event: ping\ndata: {"type": "ping"}\n\n',
    '\n',
    ':',
  ];

  for (const client of NAMES) {
    test(`${client}: they end by themselves before the first word, and the next target answers`, async () => {
      const given = PIECES.map(async (piece) => {
        const bad = upstreamWith((wire) => dribble(wire, head('text/event-stream'), piece));
        const good = upstreamWith((wire) => said(wire, saying('openai-chat', true, 'Second.')));
        const world = rawWorld(`
providers:
  bad: { protocol: openai-chat, base_url: "${bad.url}", keys: [k1234567] }
  good: { protocol: openai-chat, base_url: "${good.url}", keys: [k1234567] }
routes: [{ to: [bad/m, good/m] }]
${times}`);
        const seen = await world.ask(client, true);
        expect([piece, seen.text.includes('Second.')]).toEqual([piece, true]);
        expect(bad.asked).toBe(1);
        const alone = await worldOf(bad.url, 'openai-chat', times).ask(client, true);
        expect(alone.status).toBe(504);
        expect(alone.text).toContain('timeouts.content');
      });
      await Promise.all(given);
    });

    test(`${client}: they end by themselves behind the first word`, async () => {
      const vendor = client;
      const given = PIECES.map(async (piece) => {
        const first = head('text/event-stream') + beginning(vendor, 'Well');
        const upstream = upstreamWith((wire) => dribble(wire, first, piece));
        const seen = await worldOf(upstream.url, vendor, times).ask(client, true);
        expect([seen.status, seen.reset]).toEqual([200, true]);
        expect(seen.text).toContain('timeouts.content');
      });
      await Promise.all(given);
    });
  }

  test('blank lines before a whole answer, too', async () => {
    const upstream = upstreamWith((wire) => dribble(wire, head('application/json'), '\n'));
    const seen = await worldOf(upstream.url, 'openai-chat', times).ask('openai-chat', false);
    expect(seen.status).toBe(504);
    expect(seen.text).toContain('timeouts.content');
  });

  test('they are waited for as long as content may take', async () => {
    const upstream = upstreamWith(async (wire) => {
      const answer = saying('openai-chat', true, 'At last.');
      const at = answer.indexOf('\r\n\r\n') + 4;
      await wire.write(answer.slice(0, at));
      for (let i = 0; i < 20; i++) {
        await wire.write(': OPENROUTER PROCESSING\n\n');
        await Bun.sleep(30);
      }
      await wire.write(answer.slice(at));
      wire.end();
    });
    const yaml = 'timeouts: { first_byte: 0.2, idle: 0.2, content: 30 }';
    const seen = await worldOf(upstream.url, 'openai-chat', yaml).ask('openai-chat', true);
    expect(seen.text).toContain('At last.');
  });
});
