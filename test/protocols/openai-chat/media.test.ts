/** Media of other protocols as the parts that Chat Completions takes. */

import { describe, expect, test } from 'bun:test';
import type { MediaBlock } from '../../../src/conversation/types.ts';
import { conversation, encode, user } from './building.ts';

const sheet = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';
const document = (mediaType: string, more: Partial<MediaBlock> = {}): MediaBlock => ({
  type: 'media',
  media: 'document',
  source: { type: 'base64', mediaType, data: 'AAAA' },
  ...more,
});

describe('files', () => {
  test('a nameless file that is no PDF is not called one', () => {
    const { messages } = encode(conversation([user(document(sheet))]));
    expect(messages[0]!.content).toEqual([
      { type: 'file', file: { filename: 'document.xlsx', file_data: `data:${sheet};base64,AAAA` } },
    ]);
  });
});
