/** Images in long histories, and image headers, are read in linear time. */

import { describe, expect, test } from 'bun:test';
import type { Block, Conversation, MediaBlock, Turn } from '../../src/conversation/types.ts';
import { readDescription } from '../../src/features/vision/describer.ts';
import { imagesOf, replaceImages } from '../../src/features/vision/images.ts';
import { imageHeader } from '../../src/lib/bytes/image-header.ts';
import { expectLinear } from '../support/growth.ts';

const image = (data: string): MediaBlock => ({
  type: 'media',
  media: 'image',
  source: { type: 'base64', mediaType: 'image/png', data },
});
const conversation = (turns: readonly Turn[]): Conversation => ({
  model: 'm',
  system: [],
  turns,
  tools: [],
  settings: { stream: false },
});
const user = (...blocks: readonly Block[]): Turn => ({ role: 'user', blocks });
const text = (message: string): Block => ({ type: 'text', text: message });
const many = <T>(size: number, make: (at: number) => T) =>
  Array.from({ length: Math.ceil(size / 64) }, (_, at) => make(at));

const HISTORIES: Readonly<Record<string, (size: number) => Conversation>> = {
  'images in one turn': (size) => conversation([user(...many(size, (at) => image(`${at}`)))]),
  'images before any words': (size) =>
    conversation([...many(size, (at) => user(image(`${at}`))), user(text('what are these?'))]),
  'images without a question': (size) => conversation(many(size, (at) => user(image(`${at}`)))),
  'images under one long text': (size) =>
    conversation([user(text('x'.repeat(size))), ...many(size, (at) => user(image(`${at}`)))]),
  'a result of a tool with images': (size) =>
    conversation([
      user({
        type: 'tool-result',
        callId: 'c',
        kind: 'function',
        content: many(size, (at) => image(`${at}`)),
        isError: false,
        by: 'client',
      }),
    ]),
};

describe('a history of', () => {
  for (const [name, input] of Object.entries(HISTORIES)) {
    test(name, async () => {
      const run = (one: Conversation) => {
        const found = imagesOf(one);
        replaceImages(one, () => 'x');
        return found;
      };
      await expectLinear({ name, input, run, most: 512 * 1024 });
    });
  }

  test('ten thousand images are all found', () => {
    const history = conversation(Array.from({ length: 10_000 }, (_, at) => user(image(`${at}`))));
    expect(imagesOf(history)).toHaveLength(10_000);
  });
});

const HEADS: Readonly<Record<string, (size: number) => string>> = {
  'a JPEG of fill bytes': (size) =>
    Buffer.concat([Buffer.from([0xff, 0xd8]), Buffer.alloc(size, 0xff)]).toString('base64'),
  'a JPEG of empty segments': (size) =>
    Buffer.concat([
      Buffer.from([0xff, 0xd8]),
      Buffer.from('ffe10002'.repeat(size / 4), 'hex'),
    ]).toString('base64'),
  'no image': (size) => 'A'.repeat(size),
};

describe('the head of', () => {
  for (const [name, input] of Object.entries(HEADS)) {
    test(name, () => expectLinear({ name, input, run: imageHeader, most: 512 * 1024 }));
  }
});

test('a description of blanks takes linear time', () =>
  expectLinear({
    name: 'blanks',
    input: (size) => `x${' '.repeat(size)}x`,
    run: readDescription,
  }));
