/** A tool schema that is no JSON Schema 2020-12 makes a vendor refuse every request of the session. */

import { describe, expect, test } from 'bun:test';
import { Notes } from '../../src/conversation/notes.ts';
import { soundSchema } from '../../src/conversation/tools/sound-schema.ts';
import { refusalRetry } from '../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { scriptedGateway } from '../gateway/scripted.ts';

const text = { type: 'string' };

/** What a server sent, with its report, and what goes out. */
const ROWS: readonly (readonly [string, JsonObject, JsonObject])[] = [
  [
    'a tuple of draft 7 (hyperdxio/hyperdx#2925)',
    { a: { type: 'array', items: [text, { type: 'number' }] } },
    { a: { type: 'array', prefixItems: [text, { type: 'number' }], items: {} } },
  ],
  [
    'a tuple with more behind it (kintone/mcp-server#553)',
    { a: { type: 'array', items: [text], additionalItems: { $ref: '#/x' } } },
    { a: { type: 'array', prefixItems: [text], items: { $ref: '#/x' } } },
  ],
  [
    'an array of anything (ruvnet/ruflo#1294)',
    { a: { type: 'array' }, b: { anyOf: [{ type: ['array', 'null'] }, text] } },
    {
      a: { type: 'array', items: {} },
      b: { anyOf: [{ type: ['array', 'null'], items: {} }, text] },
    },
  ],
  [
    'names that are required twice (lidge-jun/opencodex#270)',
    { a: { type: 'object', properties: { b: text }, required: ['b', 'b'] } },
    { a: { type: 'object', properties: { b: text }, required: ['b'] } },
  ],
  [
    'keywords of null (farion1231/cc-switch#5490)',
    { a: { type: null, description: null, enum: null, items: null, default: null } },
    { a: { default: null } },
  ],
  [
    'bounds of draft 4',
    {
      a: { type: 'integer', minimum: 0, exclusiveMinimum: true },
      b: { type: 'integer', maximum: 9, exclusiveMaximum: false },
    },
    { a: { type: 'integer', exclusiveMinimum: 0 }, b: { type: 'integer', maximum: 9 } },
  ],
  [
    'types that do not exist',
    { a: { type: 'any' }, b: { type: ['str', 'string', 'string'] }, c: { type: 'STRING' } },
    { a: {}, b: { type: ['string'] }, c: text },
  ],
  ['`required` of draft 3', { a: { type: 'string', required: true } }, { a: text }],
  ['a property that is no schema', { a: 'a text', b: null }, { a: {}, b: {} }],
  ['a limit that is a text', { a: { type: 'string', maxLength: '5' } }, { a: text }],
];

const whole = (properties: JsonObject): JsonObject => ({ type: 'object', properties });

describe('what servers send', () => {
  test.each(ROWS)('%s', (_, sent, right) => {
    const notes = new Notes();
    expect(soundSchema(whole(sent), notes, '/tools/f')).toEqual(whole(right));
    expect(notes.all.map(({ name }) => name)).toEqual(['schema_simplified']);
    const again = soundSchema(whole(right), notes, '/tools/f');
    expect(again).toEqual(whole(right));
    expect(notes.size).toBe(1);
  });

  test('a sound schema stays the same object, data and unknown keywords with it', () => {
    const sound = whole({
      a: { type: ['string', 'null'], enum: ['x', null], default: null, 'x-order': null },
      b: { type: 'array', prefixItems: [true], items: false, uniqueItems: true },
      c: { const: null, examples: [null], format: 'int64', nullable: true },
      d: { $ref: '#/$defs/d', additionalProperties: false, minimum: 0, maxItems: 3 },
      type: { type: 'string' },
      required: { type: 'boolean' },
      items: { type: 'array', items: { type: 'string' } },
    });
    const notes = new Notes();
    expect(soundSchema(sound, notes, '/tools/f')).toBe(sound);
    expect(notes.size).toBe(0);
  });
});

const broken = whole({ a: { type: 'array', items: [text] }, b: { type: null } });
const mended = whole({ a: { type: 'array', items: {}, prefixItems: [text] }, b: {} });
const messages = [{ role: 'user', content: 'hi' }];
const CLIENTS = {
  'anthropic-messages': { max_tokens: 9, messages, tools: [{ name: 'f', input_schema: broken }] },
  'openai-chat': {
    messages,
    tools: [{ type: 'function', function: { name: 'f', parameters: broken } }],
  },
  'openai-responses': { input: 'hi', tools: [{ type: 'function', name: 'f', parameters: broken }] },
} as const;
const REFUSED = {
  'anthropic-messages': 'tools.0.custom.input_schema: JSON schema is invalid.',
  'openai-chat': "Invalid schema for function 'f': array schema missing items.",
  'openai-responses': "Invalid schema for function 'f': array schema missing items.",
  'google-gemini': '',
} as const;

describe.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])('from %s', (client) => {
  test.each(Object.keys(REFUSED) as (keyof typeof REFUSED)[])('to %s', async (target) => {
    const same = client === target;
    const refusal = { status: 400, json: { error: { message: REFUSED[target] } } };
    const gateway = scriptedGateway(
      target,
      [...(same ? [refusal] : []), { json: {} }, { json: {} }],
      [refusalRetry(), vendorFit()],
    );
    await gateway.ask(client, { model: 'm', ...CLIENTS[client] });
    const sent = JSON.stringify(gateway.sent[same ? 1 : 0]);
    // Within a protocol the client's own goes first: many vendors take it.
    if (same) expect(JSON.stringify(gateway.sent[0])).toContain(JSON.stringify(broken));
    expect(sent).toContain(JSON.stringify(mended));
    expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toContain('schema_simplified');
  });
});
