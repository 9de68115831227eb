/** Tokens of images and documents: sizes from file headers, the vendors' rules, and the estimate of the whole prompt. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import type { MediaBlock } from '../../src/conversation/types.ts';
import { ClientRequest } from '../../src/gateway/client-request.ts';
import { imageHeader } from '../../src/lib/bytes/image-header.ts';
import { secondsOf } from '../../src/lib/bytes/media-length.ts';
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

/** As many seconds of so many bytes. */
function wav(rate: number, seconds: number, told = rate): string {
  const bytes = Buffer.alloc(rate * seconds);
  bytes.write('RIFF', 0, 'latin1');
  bytes.write('WAVEfmt ', 8, 'latin1');
  bytes.writeUInt32LE(told, 28);
  return bytes.toString('base64');
}

/** An MP4 whose index of version 1 or 0 stands behind so many bytes of pictures. */
function film(seconds: number, pictures = 0, version = 0): string {
  const head = Buffer.from('\0\0\0\x18ftypisom\0\0\0\0isommp42', 'latin1');
  const index = Buffer.alloc(44);
  index.write('mvhd', 4, 'latin1');
  index[8] = version;
  const at = version === 0 ? 20 : 28;
  index.writeUInt32BE(version === 0 ? 1 : 1000, at);
  if (version === 0) index.writeUInt32BE(seconds, at + 4);
  else index.writeBigUInt64BE(BigInt(seconds * 1000), at + 4);
  return Buffer.concat([head, Buffer.alloc(pictures, 1), index]).toString('base64');
}

describe('the length of a recording', () => {
  test.each([
    ['WAV', 'audio/wav', wav(8000, 3), 3],
    ['WAV without a rate', 'audio/wav', wav(64_000, 1, 0), 2],
    ['MP4', 'video/mp4', film(90), 90],
    ['MP4 with its index at the end', 'video/mp4', film(90, 900_001), 90],
    ['MP4 of version 1', 'audio/mp4', film(90, 10, 1), 90],
    ['MP4 without a length', 'video/mp4', film(0, 199_932), 2],
    ['MP3', 'audio/mpeg', Buffer.alloc(16_000).toString('base64'), 2],
    ['Ogg', 'audio/ogg', Buffer.alloc(8000).toString('base64'), 2],
    ['another film', 'video/webm', Buffer.alloc(200_000).toString('base64'), 2],
    ['nothing', 'audio/wav', '', 0],
  ])('%s', (_, type, data, seconds) => expect(secondsOf(type, data)).toBeCloseTo(seconds, 1));
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

  const recording = (media: 'audio' | 'video', mediaType: string, data: string, model: string) =>
    estimateMedia(
      { type: 'media', media, source: { type: 'base64', mediaType, data } },
      'openai-chat',
      model,
    );
  const minute = wav(16_000, 60);
  test.each([
    ['gpt-audio-1.5', 600],
    ['openai/gpt-4o-audio-preview', 600],
    ['voxtral-small-latest', 750],
    ['qwen3-omni-flash', 1500],
    ['gemini-2.5-flash', 1920],
    ['some-model', 1920],
  ])('a minute of sound at %s', (model, tokens) =>
    expect(recording('audio', 'audio/wav', minute, model)).toBe(tokens),
  );

  test('a film counts by its pictures, one whose length nobody knows as a minute, none without end', () => {
    expect(recording('video', 'video/mp4', film(90), 'm')).toBe(27_000);
    expect(recording('video', 'video/mp4', film(4e9), 'm')).toBe(10_000_000);
    const source = { type: 'url', url: 'https://youtu.be/x' } as const;
    expect(estimateMedia({ type: 'media', media: 'video', source }, 'google-gemini', 'm')).toBe(
      18_000,
    );
    const all = { ...source, type: 'file-id', id: 'f' } as never;
    expect(
      estimateMedia({ type: 'media', media: 'audio', source: all }, 'google-gemini', 'm'),
    ).toBe(1920);
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
