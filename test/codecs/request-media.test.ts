/** Files, films and recordings of requests in every protocol: they arrive, or the model reads that they are missing. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../src/conversation/profile-facts.ts';
import type { ProtocolName } from '../../src/conversation/protocol-names.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';

const PDF = 'JVBERi0xLjQ=';
const FILM = 'https://example.com/a.mp4';
const YOUTUBE = 'https://www.youtube.com/watch?v=x';

/** A body whose last part is this one. */
const BODIES: Readonly<Record<ProtocolName, (part: JsonObject) => JsonObject>> = {
  'openai-chat': (part) => ({
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Look' }, part] }],
  }),
  'openai-responses': (part) => ({
    input: [{ role: 'user', content: [{ type: 'input_text', text: 'Look' }, part] }],
  }),
  'anthropic-messages': (part) => ({
    max_tokens: 99,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Look' }, part] }],
  }),
  'google-gemini': (part) => ({
    contents: [{ role: 'user', parts: [{ text: 'Look' }, part] }],
  }),
};

/** The part as an upstream of another protocol gets it, and the notes. */
function sent(from: ProtocolName, to: ProtocolName, part: JsonObject) {
  const request = CODECS[from].decodeRequest({ model: 'm', stream: false, ...BODIES[from](part) });
  const notes = new Notes();
  const target = { provider: 'p', model: 'm', protocol: to, profile: NO_PROFILE };
  const body = CODECS[to].encodeRequest(request, target, notes) as Record<string, JsonObject[]>;
  const [message] = body.messages ?? body.input ?? body.contents ?? [];
  const parts = (message!.content ?? message!.parts) as JsonObject[];
  return { last: parts.at(-1), notes: notes.all.map(({ name }) => name) };
}

const chatVideo = (url: string) => ({ type: 'video_url', video_url: { url } });
const fileData = (mimeType: string, fileUri: string) => ({ fileData: { mimeType, fileUri } });
const inlineData = (mimeType: string, data: string) => ({ inlineData: { mimeType, data } });
const omitted = (type: string, media: string) => ({ type, text: `[${media} omitted]` });

describe('films', () => {
  // https://github.com/BerriAI/litellm/issues/30501, https://github.com/NousResearch/hermes-agent/pull/21763,
  // https://github.com/OpenRouterTeam/typescript-sdk/issues/126, https://ai.google.dev/gemini-api/docs/video-understanding
  test.each<[ProtocolName, JsonObject, ProtocolName, JsonObject]>([
    ['openai-chat', chatVideo(FILM), 'google-gemini', fileData('video/mp4', FILM)],
    ['openai-chat', chatVideo(YOUTUBE), 'google-gemini', fileData('video/mp4', YOUTUBE)],
    [
      'openai-chat',
      chatVideo('data:video/webm;base64,AAAA'),
      'google-gemini',
      inlineData('video/webm', 'AAAA'),
    ],
    [
      'openai-chat',
      { type: 'input_video', video_url: { url: FILM } },
      'google-gemini',
      fileData('video/mp4', FILM),
    ],
    ['openai-chat', chatVideo(FILM), 'anthropic-messages', omitted('text', 'video')],
    ['openai-chat', chatVideo(FILM), 'openai-responses', omitted('input_text', 'video')],
    ['openai-responses', { type: 'input_video', video_url: FILM }, 'openai-chat', chatVideo(FILM)],
    [
      'google-gemini',
      inlineData('video/mp4', 'AAAA'),
      'openai-chat',
      chatVideo('data:video/mp4;base64,AAAA'),
    ],
    ['google-gemini', { fileData: { fileUri: YOUTUBE } }, 'openai-chat', chatVideo(YOUTUBE)],
    [
      'google-gemini',
      { fileData: { fileUri: YOUTUBE } },
      'anthropic-messages',
      omitted('text', 'video'),
    ],
    [
      'google-gemini',
      { fileData: { fileUri: YOUTUBE } },
      'openai-responses',
      omitted('input_text', 'video'),
    ],
  ])('a film of %s is not lost: %j at %s', (from, part, to, wanted) => {
    const { last, notes } = sent(from, to, part);
    expect(last).toEqual(wanted);
    expect(notes.includes('content_bridged')).toBe('text' in wanted);
  });

  test.each<[ProtocolName, JsonObject]>([
    ['openai-chat', chatVideo(FILM)],
    ['openai-responses', { type: 'input_video', video_url: FILM, detail: 'low' }],
    ['google-gemini', { ...inlineData('video/mp4', 'AAAA'), videoMetadata: { fps: 5 } }],
  ])('a film stays as it is within %s', (protocol, part) => {
    expect(sent(protocol, protocol, part)).toEqual({ last: part, notes: [] });
  });
});

describe('what data is, whatever its part is called', () => {
  const image = (type: string, data: string) => ({
    type: 'image_url',
    image_url: { url: `data:${type};base64,${data}` },
  });
  const pdf = {
    type: 'document',
    source: { type: 'base64', media_type: 'application/pdf', data: PDF },
  };
  test.each<[ProtocolName, JsonObject, ProtocolName, JsonObject]>([
    ['openai-chat', image('application/pdf', PDF), 'anthropic-messages', pdf],
    [
      'openai-chat',
      image('application/pdf', PDF),
      'openai-responses',
      {
        type: 'input_file',
        filename: 'document.pdf',
        file_data: `data:application/pdf;base64,${PDF}`,
      },
    ],
    [
      'openai-responses',
      { type: 'input_image', image_url: `data:application/pdf;base64,${PDF}` },
      'anthropic-messages',
      pdf,
    ],
    ['openai-chat', image('video/mp4', 'AAAA'), 'google-gemini', inlineData('video/mp4', 'AAAA')],
    [
      'openai-responses',
      { type: 'input_file', filename: 'a.png', file_data: 'data:image/png;base64,AAAA' },
      'anthropic-messages',
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    ],
    // vLLM's part, and an address where OpenAI has data (Qwen).
    [
      'openai-chat',
      { type: 'audio_url', audio_url: { url: 'https://example.com/a.mp3' } },
      'google-gemini',
      fileData('audio/mp3', 'https://example.com/a.mp3'),
    ],
    [
      'openai-chat',
      { type: 'input_audio', input_audio: { data: 'https://example.com/a.wav', format: 'wav' } },
      'google-gemini',
      fileData('audio/wav', 'https://example.com/a.wav'),
    ],
    // Parts in the form of Responses among the messages of Chat.
    [
      'openai-chat',
      { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' },
      'anthropic-messages',
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    ],
    [
      'openai-chat',
      { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'low' },
      'openai-responses',
      { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'low' },
    ],
    [
      'openai-chat',
      { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
      'google-gemini',
      inlineData('application/pdf', PDF),
    ],
    [
      'openai-chat',
      { type: 'input_file', file_url: 'https://example.com/a.pdf' },
      'anthropic-messages',
      { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } },
    ],
    // A media type that says nothing.
    [
      'openai-chat',
      image('application/octet-stream', 'AAAA'),
      'google-gemini',
      inlineData('application/octet-stream', 'AAAA'),
    ],
  ])('of %s: %j at %s', (from, part, to, wanted) => {
    expect(sent(from, to, part).last).toEqual(wanted);
  });
});

test.each<[ProtocolName, JsonObject]>([
  [
    'google-gemini',
    fileData('application/pdf', 'https://generativelanguage.googleapis.com/v1beta/files/abc'),
  ],
  ['google-gemini', fileData('image/png', 'gs://bucket/a.png')],
  ['anthropic-messages', { type: 'document', source: { type: 'file', file_id: 'file_1' } }],
])('a file that lies at the vendor of %s is not asked for at OpenAI: %j', (from, part) => {
  const { last, notes } = sent(from, 'openai-responses', part);
  expect(last).toMatchObject({ type: 'input_text', text: expect.stringContaining('omitted]') });
  expect(notes).toEqual(['content_bridged']);
});
