/** Media of other protocols become parts that Responses accepts. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../../src/codecs/codec.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../../src/conversation/profile-facts.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { target } from './material.ts';

function sent(from: Codec, messages: Json, profile: Partial<Profile>) {
  const notes = new Notes();
  const request = from.decodeRequest({ model: 'm', max_tokens: 90, messages });
  const to = target('gpt', { ...NO_PROFILE, ...profile });
  const items = openaiResponses.encodeRequest(request, to, notes).input as readonly JsonObject[];
  return { items, parts: items.at(-1)!.content, notes: notes.summary() };
}

const chat = (parts: Json, profile: Partial<Profile> = {}) =>
  sent(openaiChat, [{ role: 'user', content: parts }], profile);

const messages = (blocks: Json) => sent(anthropicMessages, [{ role: 'user', content: blocks }], {});

const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';

describe('files', () => {
  const file = (type: string, filename?: string) => ({
    type: 'file',
    file: {
      ...(filename === undefined ? {} : { filename }),
      file_data: `data:${type};base64,AAAA`,
    },
  });

  test("a Chat file's name is not lost", () => {
    const { parts, notes } = chat([file(DOCX, 'report.docx')]);
    expect(parts).toEqual([
      { type: 'input_file', filename: 'report.docx', file_data: `data:${DOCX};base64,AAAA` },
    ]);
    expect(notes).toBe('');
  });

  test('the placeholder of an omitted file holds its name', () => {
    const { parts } = chat([file(DOCX, 'report.docx')], { documents: false });
    expect(parts).toEqual([{ type: 'input_text', text: '[document omitted: report.docx]' }]);
    const unknown = { title: 'a.pdf', source: { type: 'file', file_id: 'file_1' } };
    expect(messages([{ type: 'document', ...unknown }]).parts).toEqual([
      { type: 'input_text', text: '[document omitted: a.pdf]' },
    ]);
  });

  test.each([
    [DOCX, 'document.docx'],
    ['application/vnd.ms-excel', 'document.xls'],
    ['text/csv', 'document.csv'],
    ['text/markdown', 'document.md'],
    ['text/plain', 'document.txt'],
    ['application/ld+json', 'document.json'],
    ['application/vnd.nobody-knows', 'document.bin'],
    ['nothing', 'document.bin'],
  ])('a nameless %s gets an extension that vendors know', (type, filename) => {
    expect(chat([file(type)]).parts).toEqual([
      { type: 'input_file', filename, file_data: `data:${type};base64,AAAA` },
    ]);
  });
});

describe('the context of a document', () => {
  const context = 'From the archive.';
  const textPart = { type: 'input_text', text: context };
  const source = { type: 'base64', media_type: 'application/pdf', data: 'AAAA' };
  const pdf = { type: 'document', title: 'D.pdf', context, source };
  const file = {
    type: 'input_file',
    filename: 'D.pdf',
    file_data: 'data:application/pdf;base64,AAAA',
  };

  test('the context is not lost: it comes before the file, with a note', () => {
    const { parts, notes } = messages([pdf]);
    expect(parts).toEqual([textPart, file]);
    expect(notes).toBe('content_bridged');
  });

  test('the context is a line of the heading of a text document', () => {
    const body = { type: 'text', media_type: 'text/plain', data: 'body' };
    const { parts } = messages([
      { type: 'document', title: 'D', context, source: body },
      { type: 'document', context, source: body },
    ]);
    expect(parts).toEqual([
      { type: 'input_text', text: 'D\nFrom the archive.\n\nbody' },
      { type: 'input_text', text: 'From the archive.\n\nbody' },
    ]);
  });

  test('the context comes before the file of a tool result, and before the text for an omitted one', () => {
    const history: Json = [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [pdf] }] },
    ];
    expect(sent(anthropicMessages, history, {}).items.at(-1)!.output).toEqual([textPart, file]);
    expect(sent(anthropicMessages, history, { documents: false }).items.at(-1)!.output).toEqual([
      textPart,
      { type: 'input_text', text: '[document omitted: D.pdf]' },
    ]);
  });
});

describe('audio', () => {
  const audio = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };

  test('audio becomes text with a note, since the API refuses audio parts', () => {
    const { parts, notes } = chat([audio, { type: 'text', text: 'what is said?' }]);
    expect(parts).toEqual([
      { type: 'input_text', text: '[audio omitted]' },
      { type: 'input_text', text: 'what is said?' },
    ]);
    expect(notes).toBe('content_bridged');
  });

  test('audio of a Responses client goes out unchanged', () => {
    const body = { model: 'm', input: [{ type: 'message', role: 'user', content: [audio] }] };
    const request = openaiResponses.decodeRequest(body);
    const longer = { ...request, turns: [...request.turns, ...request.turns] };
    const { input } = openaiResponses.encodeRequest(longer, target('gpt'), new Notes());
    expect(input).toEqual([...body.input, ...body.input]);
  });
});
