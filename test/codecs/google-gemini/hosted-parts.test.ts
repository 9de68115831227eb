/** What Google's own tools ran, `toolCall` and `toolResponse` and code, in answers and histories of every protocol. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../../src/codecs/codec.ts';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE } from '../../../src/conversation/profile-facts.ts';
import type { Block } from '../../../src/conversation/types.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { chunk, client, decodeAll, sse, target, upstream } from './support.ts';

const SEARCH: readonly JsonObject[] = [
  {
    toolCall: { id: 't1', toolType: 'GOOGLE_SEARCH_WEB', args: { queries: ['tides', 'moon'] } },
    thoughtSignature: 'EiwK',
  },
  {
    toolResponse: { id: 't1', toolType: 'GOOGLE_SEARCH_WEB', response: { widget: '<div>' } },
    thoughtSignature: 'EiwL',
  },
];
const MAPS: readonly JsonObject[] = [
  { toolCall: { id: 't2', toolType: 'GOOGLE_MAPS', args: { place: 'Husum' } } },
  { toolResponse: { id: 't2', toolType: 'GOOGLE_MAPS', response: { high: '14:20' } } },
];
const REST: readonly JsonObject[] = [
  { text: 'High at two.' },
  { functionCall: { id: 'f1', name: 'look', args: {} }, thoughtSignature: 'EiwM' },
];
const PARTS = [...SEARCH, ...MAPS, ...REST];

const answer = chunk(PARTS, { finishReason: 'STOP' });

const ASKED: readonly (readonly [Codec, JsonObject])[] = [
  [
    anthropicMessages,
    {
      model: 'm',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    },
  ],
  [openaiResponses, { model: 'm', input: 'hi', tools: [{ type: 'web_search' }] }],
  [openaiChat, { model: 'm', messages: [{ role: 'user', content: 'hi' }] }],
  [googleGemini, { model: 'm', contents: [{ parts: [{ text: 'hi' }] }] }],
];

/** The answer as a client gets it, whole and streamed. */
function answersFor([codec, body]: (typeof ASKED)[number]) {
  const request = codec.decodeRequest(body);
  const whole = client(request);
  const reply = codec.encodeReply(googleGemini.decodeReply(answer, upstream(request)), whole);
  const streamed = client(request);
  const encoder = codec.encodeStream(streamed);
  const events = decodeAll(sse(answer), [], request);
  const text = events.map((event) => encoder.event(event)).join('');
  return { reply: JSON.stringify(reply), text, whole, streamed };
}

const noted = ({ notes }: { notes: Notes }) => notes.all.map(({ name }) => name);

describe('an answer with tools that Google ran', () => {
  const [messages, responses, chat, gemini] = ASKED;

  test('Messages: the search is a server tool with its result, others are left out with a note', () => {
    const { reply, text, whole, streamed } = answersFor(messages!);
    for (const one of [reply, text]) {
      expect(one).toContain('"type":"server_tool_use","id":"srvtoolu_t1","name":"web_search"');
      expect(one).toContain('"type":"web_search_tool_result","tool_use_id":"srvtoolu_t1"');
      expect(one).not.toContain('Husum');
      expect(one).toContain('"name":"look"');
    }
    expect(reply).toContain('"input":{"query":"tides"}');
    for (const context of [whole, streamed]) expect(noted(context)).toContain('content_dropped');
  });

  test('Responses: the search is a web_search_call, others are left out with a note', () => {
    const { reply, text, whole, streamed } = answersFor(responses!);
    for (const one of [reply, text]) {
      expect(one).toContain('"type":"web_search_call","status":"completed"');
      expect(one).toContain('"query":"tides"');
      expect(one).not.toContain('Husum');
      expect(one).toContain('"name":"look"');
    }
    for (const context of [whole, streamed]) {
      expect(noted(context)).toContain('hosted_call_dropped');
    }
  });

  test('Chat: both are left out with a note, and the call of the client stays the only one', () => {
    const { reply, text, whole, streamed } = answersFor(chat!);
    for (const one of [reply, text]) {
      expect(one).not.toMatch(/Husum|tides/);
      expect(one.match(/"name":"/g)).toHaveLength(1);
      expect(one).toContain('High at two.');
    }
    for (const context of [whole, streamed]) {
      expect(noted(context)).toEqual(['provider_call_dropped', 'provider_call_dropped']);
    }
  });

  test('Gemini: the very parts, with their signatures, in their order', () => {
    const { reply, text, whole, streamed } = answersFor(gemini!);
    const parts = text
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .flatMap((line) => JSON.parse(line.slice(6)).candidates[0].content.parts as JsonObject[]);
    expect(JSON.parse(reply).candidates[0].content.parts).toEqual(PARTS);
    expect(parts.filter((part) => part.text !== '')).toEqual(PARTS);
    expect([noted(whole), noted(streamed)]).toEqual([[], []]);
  });
});

describe('a history with tools that Google ran', () => {
  const history: JsonObject = {
    model: 'm',
    contents: [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: PARTS },
      {
        role: 'user',
        parts: [{ functionResponse: { id: 'f1', name: 'look', response: { output: 'seen' } } }],
      },
    ],
    tools: [{ functionDeclarations: [{ name: 'look' }] }],
  };

  test('goes back to Google part by part, also where another turn has changed', () => {
    const conversation = googleGemini.decodeRequest(history);
    const edited = { ...conversation, turns: [...conversation.turns] };
    for (const one of [conversation, edited]) {
      const { contents } = googleGemini.encodeRequest(one, target(), new Notes());
      expect(contents).toEqual(history.contents!);
    }
  });

  test('is a call and its result for the gateway, never one that the client must answer', () => {
    const { turns } = googleGemini.decodeRequest(history);
    const kinds = turns[1]!.blocks.map((block: Block) =>
      block.type === 'tool-call' || block.type === 'tool-result'
        ? [block.type, block.type === 'tool-call' ? block.name : block.callId, block.by]
        : [block.type],
    );
    expect(kinds).toEqual([
      ['tool-call', 'web_search', 'provider'],
      ['tool-result', 't1', 'provider'],
      ['tool-call', 'google_maps', 'provider'],
      ['tool-result', 't2', 'provider'],
      ['text'],
      ['tool-call', 'look', 'client'],
    ]);
  });

  test.each([
    ['anthropic-messages', anthropicMessages, 'content_dropped'],
    ['openai-responses', openaiResponses, 'hosted_call_dropped'],
    ['openai-chat', openaiChat, 'provider_call_dropped'],
  ] as const)(
    'onto %s: the calls are left out with a note, what was found stays',
    (protocol, codec, note) => {
      const conversation = googleGemini.decodeRequest(history);
      const notes = new Notes();
      const to = { provider: 'other', model: 'm', protocol, profile: NO_PROFILE };
      const body = JSON.stringify(codec.encodeRequest(conversation, to, notes));
      expect(body).not.toMatch(/toolCall|Husum|tides|EiwK|EiwL/);
      expect(body).toContain('High at two.');
      expect(body).toContain('look');
      expect(notes.all.map(({ name }) => name)).toContain(note);
    },
  );
});
