/** Tokens of images and documents: sizes from file headers, the vendors' rules, and the estimate of the whole prompt. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import type { MediaBlock } from '../../src/conversation/types.ts';
import { ClientRequest } from '../../src/gateway/client-request.ts';
import { imageHeader } from '../../src/lib/bytes/image-header.ts';
import { estimateMedia, requestFacts } from '../../src/routing/facts.ts';

function png(width: number, height: number): string {
  const head = Buffer.alloc(64);
  head.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  head.write('IHDR', 12);
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  return head.toString('base64');
}

function jpeg(width: number, height: number, before = 60_000): string {
  const app = Buffer.alloc(before + 4);
  app.set([0xff, 0xe1]);
  app.writeUInt16BE(before + 2, 2);
  const frame = Buffer.from([0xff, 0xc0, 0, 17, 8, 0, 0, 0, 0, 3, 0, 0, 0, 0]);
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), app, app, frame]).toString('base64');
}

function gif(width: number, height: number): string {
  const head = Buffer.from('GIF89a______________________');
  head.writeUInt16LE(width, 6);
  head.writeUInt16LE(height, 8);
  return head.toString('base64');
}

function webp(kind: 'VP8 ' | 'VP8L' | 'VP8X', width: number, height: number): string {
  const head = Buffer.alloc(40);
  head.write('RIFF', 0);
  head.write(`WEBP${kind}`, 8);
  if (kind === 'VP8 ') {
    head.writeUInt16LE(width, 26);
    head.writeUInt16LE(height, 28);
  } else if (kind === 'VP8L') {
    head.writeUInt32LE((((height - 1) << 14) | (width - 1)) >>> 0, 21);
  } else {
    head.writeUIntLE(width - 1, 24, 3);
    head.writeUIntLE(height - 1, 27, 3);
  }
  return head.toString('base64');
}

const image = (data: string, more: Partial<MediaBlock> = {}): MediaBlock => ({
  type: 'media',
  media: 'image',
  source: { type: 'base64', mediaType: 'image/png', data },
  ...more,
});

describe('the size of an image', () => {
  test.each([
    ['PNG', png(1024, 768)],
    ['JPEG, behind what a camera adds', jpeg(1024, 768)],
    ['GIF', gif(1024, 768)],
    ['WebP, lossy', webp('VP8 ', 1024, 768)],
    ['WebP, lossless', webp('VP8L', 1024, 768)],
    ['WebP, extended', webp('VP8X', 1024, 768)],
  ])('%s', (_, data) => expect(imageHeader(data)).toMatchObject({ width: 1024, height: 768 }));

  test('the size is unknown for anything else, and for cut or empty files', () => {
    const bad = [
      '',
      'AAAA',
      png(0, 5),
      jpeg(1, 1).slice(0, 2000),
      'not base64!',
      webp('VP8 ', 9, 9).slice(0, 30),
    ];
    for (const data of bad) expect(imageHeader(data)).toBeUndefined();
    // Segments of length zero must not loop.
    expect(
      imageHeader(Buffer.from([0xff, 0xd8, ...new Array(90).fill(0xff)]).toString('base64')),
    ).toBeUndefined();
  });
});

describe('tokens', () => {
  const claude = (data: string) => estimateMedia(image(data), 'anthropic-messages', 'm');
  const openai = (data: string, detail?: string) =>
    estimateMedia(image(data, detail === undefined ? {} : { detail }), 'openai-chat', 'gpt-4o');

  test("Anthropic's rule gives the tokens of an image", () => {
    expect(claude(png(1024, 1024))).toBe(1399);
    expect(claude(png(200, 200))).toBe(54);
    expect(claude(png(4000, 4000))).toBe(1600);
    expect(estimateMedia(image(png(1024, 1024)), 'openai-chat', 'claude-x')).toBe(1399);
  });

  test("OpenAI's rule gives the tokens of an image", () => {
    expect(openai(png(1024, 1024))).toBe(765);
    expect(openai(png(2048, 4096))).toBe(1105);
    expect(openai(png(512, 512))).toBe(255);
    expect(openai(png(4096, 8192), 'low')).toBe(85);
  });

  test('an image at a URL counts as one of a common size, and invalid image data as none', () => {
    const url = { source: { type: 'url', url: 'https://a.example/x.png' } } as const;
    expect(estimateMedia(image('', url), 'openai-chat', 'm')).toBe(765);
    expect(estimateMedia(image('', url), 'anthropic-messages', 'm')).toBe(1600);
    expect(openai('AAAA')).toBe(0);
  });

  test('documents count by their pages', () => {
    const pdf = (pages: number) =>
      Buffer.from(`%PDF-1.7 ${'/Type /Page /X '.repeat(pages)}/Type /Pages`).toString('base64');
    const document = (data: string) =>
      estimateMedia(
        {
          type: 'media',
          media: 'document',
          source: { type: 'base64', mediaType: 'application/pdf', data },
        },
        'anthropic-messages',
        'm',
      );
    expect(document(pdf(3))).toBe(6000);
    expect(document(Buffer.alloc(300_000, 'x').toString('base64'))).toBe(8000);
  });
});

describe('the estimate', () => {
  function tokens(protocol: typeof openaiChat | typeof anthropicMessages, body: object): number {
    const bytes = Buffer.from(JSON.stringify(body));
    const ask = new ClientRequest(protocol, bytes);
    return requestFacts({
      model: ask.model,
      protocol: protocol.name,
      stream: false,
      bytes: bytes.length,
      headers: new Headers(),
      affinity: 'x',
      request: ask,
    }).tokens;
  }

  test('an image in a small body is counted', () => {
    const source = { type: 'base64', media_type: 'image/png', data: png(1024, 1024) };
    const content = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', source },
    ];
    const body = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content }] };
    const counted = tokens(anthropicMessages, body);
    expect(counted).toBeGreaterThan(1399);
    expect(counted).toBeLessThan(1480);
    const url = `data:image/png;base64,${png(1024, 1024)}`;
    const parts = [{ type: 'image_url', image_url: { url } }];
    const chat = tokens(openaiChat, { model: 'm', messages: [{ role: 'user', content: parts }] });
    expect(chat).toBeGreaterThan(765);
    expect(chat).toBeLessThan(820);
  });

  test('two-byte letters have a separate rate', () => {
    const of = (content: string) =>
      tokens(openaiChat, { model: 'm', messages: [{ role: 'user', content }] });
    const russian = 'Сегодня хорошая погода, и мы идём гулять в парк. '.repeat(200);
    // o200k: 2.8 characters per token.
    expect(Math.abs(of(russian) / (russian.length / 2.8) - 1)).toBeLessThan(0.15);
    const english = 'Today the weather is fine, and we go for a walk. '.repeat(200);
    expect(Math.abs(of(english) / (english.length / 4) - 1)).toBeLessThan(0.05);
  });
});
