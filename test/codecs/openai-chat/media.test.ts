/** Media of other protocols become parts that Chat Completions accepts. */

import { describe, expect, test } from 'bun:test';
import type { MediaBlock } from '../../../src/conversation/types.ts';
import { conversation, encode, result, user } from './building.ts';

const sheet = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';
const document = (mediaType: string, more: Partial<MediaBlock> = {}): MediaBlock => ({
  type: 'media',
  media: 'document',
  source: { type: 'base64', mediaType, data: 'AAAA' },
  ...more,
});

describe('files', () => {
  test('a file without a name gets the extension of its media type', () => {
    const { messages } = encode(conversation([user(document(sheet))]));
    expect(messages[0]!.content).toEqual([
      { type: 'file', file: { filename: 'document.xlsx', file_data: `data:${sheet};base64,AAAA` } },
    ]);
  });
});

describe('the context of a document', () => {
  const pdf = document('application/pdf', { title: 'D.pdf', context: 'From the archive.' });
  const textPart = { type: 'text', text: 'From the archive.' };
  const file = {
    type: 'file',
    file: { filename: 'D.pdf', file_data: 'data:application/pdf;base64,AAAA' },
  };

  test('the context is not lost: it comes before the file, with a note', () => {
    const { messages, notes } = encode(conversation([user(pdf)]));
    expect(messages[0]!.content).toEqual([textPart, file]);
    expect(notes).toBe('content_bridged');
  });

  test('the context comes before the file of a tool result', () => {
    const { messages } = encode(conversation([user(result('a', [pdf]))]));
    expect(messages[1]!.content).toEqual([
      { type: 'text', text: 'Attached to the result of a:' },
      textPart,
      file,
    ]);
  });

  test('the context comes before the text for a file that is not shown', () => {
    const { messages } = encode(conversation([user(pdf)]), { documents: false });
    expect(messages[0]!.content).toBe('From the archive.\n\n[document not shown: D.pdf]');
  });
});

describe('detail of images', () => {
  const picture: MediaBlock = {
    type: 'media',
    media: 'image',
    source: { type: 'url', url: 'https://a.example/b.png' },
    detail: 'original',
  };
  const shown = (detail: string) => ({
    type: 'image_url',
    image_url: { url: 'https://a.example/b.png', detail },
  });

  test('original of Responses becomes high with one note, in any position', () => {
    const { messages, notes } = encode(
      conversation([user(result('a', [picture])), user(picture, picture)]),
      { imagesInResults: true },
    );
    expect(messages[0]!.content).toEqual([shown('high')]);
    expect(messages[1]!.content).toEqual([shown('high'), shown('high')]);
    expect(notes).toBe('parameter_mapped');
  });

  test('original from a Chat client stays, high is high', () => {
    const residue = { protocol: 'openai-chat' as const, value: shown('original') };
    const { messages, notes } = encode(
      conversation([user({ ...picture, residue }), user({ ...picture, detail: 'high' })]),
    );
    expect(messages[0]!.content).toEqual([shown('original')]);
    expect(messages[1]!.content).toEqual([shown('high')]);
    expect(notes).toBe('');
  });
});
