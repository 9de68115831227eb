/** Content parts of Chat in the form of another API: a vendor that refuses them gets Chat's own, from the refusal on. */

import { expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const URL = 'https://example.com/a.png';
const PNG = 'data:image/png;base64,iVBORw0KGgo=';
const PDF = 'data:application/pdf;base64,JVBERi0=';
const SEE: JsonObject = { type: 'text', text: 'see' };
const shown = (url: string, more: JsonObject = {}): JsonObject => ({
  type: 'image_url',
  image_url: { url, ...more },
});

/** The part as the client has it, and as Chat does. */
const PARTS: readonly (readonly [JsonObject, JsonObject])[] = [
  // Clients of Mistral's API, whose own form is a text, and of older libraries (anasfik/openai#203).
  [{ type: 'image_url', image_url: URL }, shown(URL)],
  [{ type: 'image_url', image_url: PNG }, shown(PNG)],
  [
    { type: 'image_url', image_url: URL, cache_control: { type: 'ephemeral' } },
    { ...shown(URL), cache_control: { type: 'ephemeral' } },
  ],
  // Responses (openai/openai-agents-python#2797 has it the other way).
  [{ type: 'input_image', image_url: URL, detail: 'low' }, shown(URL, { detail: 'low' })],
  [
    { type: 'input_text', text: 'hi' },
    { type: 'text', text: 'hi' },
  ],
  [
    { type: 'output_text', text: 'hi', annotations: [] },
    { type: 'text', text: 'hi', annotations: [] },
  ],
  [
    { type: 'input_file', filename: 'a.pdf', file_data: PDF },
    { type: 'file', file: { filename: 'a.pdf', file_data: PDF } },
  ],
  // Messages (Cursor, for models named claude-…).
  [
    {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' },
    },
    shown(PNG),
  ],
  [{ type: 'image', source: { type: 'url', url: URL } }, shown(URL)],
];

const OPENAI = (place: string) =>
  `Invalid type for '${place}.image_url': expected an object, but got a string instead.`;
const REFUSALS: readonly (readonly [string, number])[] = [
  // https://github.com/anasfik/openai/issues/203, https://github.com/microsoft/promptflow/issues/3946
  [OPENAI('messages[1].content[1]'), 400],
  [
    "Invalid value: 'input_image'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'.",
    400,
  ],
  [
    "Invalid value: 'input_text'. Supported values are: 'text', 'image_url', 'video_url' and 'video'.",
    400,
  ],
  // Servers in zod, pydantic and Go.
  ['messages.1.content.1.image_url: Invalid input: expected object, received string', 400],
  [
    "[{'type': 'dict_type', 'loc': ('body', 'messages', 1, 'content', 1, 'image_url'), 'msg': 'Input should be a valid dictionary'}]",
    422,
  ],
  [
    'json: cannot unmarshal string into Go struct field Part.messages.content.image_url of type ImageURL',
    400,
  ],
];

const refused = (message: string, status = 400): Scripted => ({
  status,
  json: { error: { message } },
});
const gateway = (
  script: Scripted[],
  protocol: ProtocolName = 'openai-chat',
  yaml = '',
  profile = 'none',
) => scriptedGateway(protocol, script, [refusalRetry(), vendorFit()], yaml, { profile });
const FINE_CHAT = FINE['openai-chat'];
const asked = (part: Json): JsonObject => ({
  model: 'm',
  messages: [
    { role: 'system', content: 's' },
    { role: 'user', content: [SEE, part] },
  ],
});

test.each(PARTS)('%j becomes Chat’s own once it is refused', async (part, own) => {
  const { ask, sent, summaries } = gateway([refused(OPENAI('messages[1].content[1]')), FINE_CHAT]);
  expect((await ask('openai-chat', asked(part))).status).toBe(200);
  expect(sent).toEqual([asked(part), asked(own)]);
  expect(summaries[0]!.notes.map(({ name }) => name)).toContain('content_bridged');
});

test.each(REFUSALS)('the refusal %s is understood', async (message, status) => {
  const [part, own] = PARTS[0]!;
  const { ask, sent } = gateway([refused(message, status), FINE_CHAT]);
  expect((await ask('openai-chat', asked(part))).status).toBe(200);
  expect(sent).toEqual([asked(part), asked(own)]);
});

test.each(PARTS)('%j goes out as it came where nobody has refused it', async (part) => {
  const { ask, sent } = gateway([FINE_CHAT]);
  await ask('openai-chat', asked(part));
  expect(sent).toEqual([asked(part)]);
});

test.each(PARTS)('%j needs no refusal with a configured profile', async (part, own) => {
  const yaml = 'profiles: { strict: { foreignParts: false } }';
  const { ask, sent } = gateway([FINE_CHAT, FINE_CHAT], 'openai-chat', yaml, 'strict');
  await ask('openai-chat', asked(part));
  await ask('openai-chat', asked(own));
  expect(sent).toEqual([asked(own), asked(own)]);
});

test('what Chat has itself, or nobody knows, stays', async () => {
  const content = [SEE, shown(URL), { type: 'new_in_2031', image_url: URL }, { type: 'image' }];
  const body = { model: 'm', messages: [{ role: 'user', content }] };
  const yaml = 'profiles: { strict: { foreignParts: false } }';
  const { ask, sent } = gateway([FINE_CHAT], 'openai-chat', yaml, 'strict');
  await ask('openai-chat', body);
  expect(sent).toEqual([body]);
});

test('a vendor of Responses that refuses a text in a part is not asked twice', async () => {
  const message = "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.";
  const { ask, sent } = gateway([refused(message)], 'openai-responses');
  const input = [{ role: 'assistant', content: [{ type: 'input_text', text: 'a' }] }];
  expect((await ask('openai-responses', { model: 'm', input })).status).toBe(400);
  expect(sent).toHaveLength(1);
});
