/** The vendor's own error at the end of an endpoint's stream is logged in its words, wherever the bytes were cut. */

import { expect, test } from 'bun:test';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { StreamEnd } from '../../src/endpoints/stream-end.ts';

const STREAM = Buffer.from(
  'data: {"type":"transcript.text.delta","delta":"Grüße"}\n\ndata: {"error":{"message":"余额不足 — gesperrt"}}\n\n',
);

test('words of any script stay readable at every chunk boundary', () => {
  for (let cut = 0; cut <= STREAM.length; cut++) {
    const end = new StreamEnd({ name: 'audio-transcriptions' }, openaiChat);
    end.push(STREAM.subarray(0, cut));
    end.push(STREAM.subarray(cut));
    expect(end.isCut).toBe(false);
    expect(end.error?.message).toBe('余额不足 — gesperrt');
  }
});
