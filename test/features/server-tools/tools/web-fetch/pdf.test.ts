/** web_fetch and PDFs: their text is read, and a broken or hostile one costs one result. */

import { afterAll, describe, expect, test } from 'bun:test';
import { deflateSync } from 'node:zlib';
import { webFetchTool } from '../../../../../src/features/server-tools/tools/web-fetch/index.ts';

interface Part {
  readonly dict: string;
  readonly stream?: Uint8Array;
}

/** One text operator for each line; pdf.js leaves out what lies beyond the page. */
const lines = (page: string) =>
  page
    .split('\n')
    .map((line) => `(${line}) Tj 0 -14 Td`)
    .join(' ');

/** A PDF of these pages; each is the text of a line, or the bytes of a compressed content stream. */
function pdf(pages: readonly (string | Uint8Array)[], title = 'A report', trailer = ''): Buffer {
  const info = 4 + 2 * pages.length;
  const kids = pages.map((_, i) => `${4 + 2 * i} 0 R`).join(' ');
  const parts: Part[] = [
    { dict: '/Type /Catalog /Pages 2 0 R' },
    { dict: `/Type /Pages /Kids [${kids}] /Count ${pages.length}` },
    { dict: '/Type /Font /Subtype /Type1 /BaseFont /Helvetica' },
    ...pages.flatMap((page, i): Part[] => {
      const isText = typeof page === 'string';
      const stream = isText ? Buffer.from(`BT /F1 12 Tf 72 720 Td ${lines(page)} ET`) : page;
      return [
        {
          dict: `/Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + 2 * i} 0 R`,
        },
        { dict: `/Length ${stream.length}${isText ? '' : ' /Filter /FlateDecode'}`, stream },
      ];
    }),
    { dict: `/Title (${title})` },
  ];
  const chunks: Buffer[] = [Buffer.from('%PDF-1.4\n')];
  const places: number[] = [];
  let size = chunks[0]!.length;
  const add = (bytes: Uint8Array) => {
    chunks.push(Buffer.from(bytes));
    size += bytes.length;
  };
  parts.forEach(({ dict, stream }, i) => {
    places.push(size);
    add(Buffer.from(`${i + 1} 0 obj\n<< ${dict} >>\n`));
    if (stream !== undefined) {
      add(Buffer.from('stream\n'));
      add(stream);
      add(Buffer.from('\nendstream\n'));
    }
    add(Buffer.from('endobj\n'));
  });
  const at = size;
  const rows = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`).join('');
  add(Buffer.from(`xref\n0 ${info + 1}\n0000000000 65535 f \n${rows}`));
  add(Buffer.from(`trailer << /Size ${info + 1} /Root 1 0 R /Info ${info} 0 R ${trailer} >>\n`));
  add(Buffer.from(`startxref\n${at}\n%%EOF`));
  return Buffer.concat(chunks);
}

const LOCKED =
  '/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 ' +
  `/O <${'11'.repeat(32)}> /U <${'22'.repeat(32)}> >>`;
const two = pdf(['Basil needs water.', 'Mint needs more.'], 'Herbs');
/** A page whose 2.6 MB unfold to 512 MB of operators. */
const bomb = () => pdf([deflateSync(Buffer.alloc(1 << 29, 'q Q '))]);

interface Served {
  readonly bytes: () => Buffer;
  readonly type?: string;
}
let served: Served = { bytes: () => two };
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: () =>
    new Response(new Blob([new Uint8Array(served.bytes())]).stream(), {
      headers: served.type === '' ? {} : { 'content-type': served.type ?? 'application/pdf' },
    }),
});
afterAll(() => server.stop(true));

const read = (what: Served, args = {}, signal = new AbortController().signal) => {
  served = what;
  const tool = webFetchTool({
    inject: 'declared',
    timeoutMs: 60_000,
    maxBytes: 5_000_000,
    maxText: 20_000,
    maxRedirects: 0,
    allow: [`127.0.0.1:${server.port}`],
  });
  const url = `http://127.0.0.1:${server.port}/a`;
  return tool.run({ url, ...args }, { signal, callId: 'c', options: {}, log: () => {} });
};

describe('the text of a PDF reaches the model', () => {
  for (const type of [
    'application/pdf',
    'application/octet-stream',
    'text/plain',
    'text/html',
    '',
  ]) {
    test(`called ${type || 'nothing'} by the server`, async () => {
      expect(await read({ bytes: () => two, type })).toMatchObject({
        ok: true,
        payload: {
          title: 'Herbs',
          text: 'Basil needs water.\n\nMint needs more.',
          truncated: false,
        },
      });
    });
  }

  test('with other bytes before its mark', async () => {
    const bytes = () => Buffer.concat([Buffer.from('\r\n\r\n'), two]);
    const { payload } = await read({ bytes });
    expect(payload).toMatchObject({ text: 'Basil needs water.\n\nMint needs more.' });
  });

  test('in parts, each read from `start`', async () => {
    const long = pdf(
      Array.from({ length: 40 }, (_, i) => `page ${i}${'\nsome words of the page'.repeat(45)}`),
    );
    const first = (await read({ bytes: () => long })).payload as Record<string, unknown>;
    expect(first.truncated).toBe(true);
    expect(first.text).toHaveLength(20_000);
    const rest = (await read({ bytes: () => long }, { start: 40_000 })).payload;
    expect(rest).toMatchObject({ truncated: false });
    expect((rest as { text: string }).text).toEndWith('words of the page');
  });
});

test('a document without text says so, and is not an error', async () => {
  const outcome = await read({ bytes: () => pdf(['', '']) });
  expect(outcome.ok).toBe(true);
  expect(String(outcome.text)).toContain('The document has no text');
});

describe('a PDF that cannot be read says why', () => {
  const cases: readonly (readonly [string, () => Buffer, string])[] = [
    ['locked', () => pdf(['x'], 'x', LOCKED), 'needs a password'],
    ['broken', () => two.subarray(0, 200), 'is broken'],
    ['no PDF', () => Buffer.from('hello'), 'no PDF, although the server says so'],
    [
      'longer than what is read',
      () => Buffer.concat([two.subarray(0, 60), Buffer.alloc(6e6)]),
      'larger than',
    ],
  ];
  for (const [name, bytes, why] of cases) {
    test(name, async () => {
      await expect(read({ bytes })).rejects.toThrow(why);
    });
  }

  test('one that unfolds without end is given up, and this process stays small', async () => {
    const bytes = bomb();
    const before = process.memoryUsage().rss;
    await read({ bytes: () => bytes }).catch((thrown) => {
      expect(String(thrown)).toMatch(/too much memory|too long/);
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  }, 60_000);
});

test('a client that leaves ends the reading', async () => {
  const abort = new AbortController();
  const bytes = bomb();
  const leave = () => {
    setTimeout(() => abort.abort(new Error('gone')), 50);
    return bytes;
  };
  await expect(read({ bytes: leave }, {}, abort.signal)).rejects.toThrow('gone');
}, 60_000);
