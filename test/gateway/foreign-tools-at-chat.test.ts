/** Tools and choices in the form of Anthropic or of Responses at `/chat/completions`: vendors of Chat refuse them as they are. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import { providersOf } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const VENDORS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'google-gemini'] as const;

let upstream: FakeUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await startInProcess(providersOf(upstream, VENDORS));
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});
beforeEach(() => upstream.clear());

const parameters = { type: 'object', properties: { path: { type: 'string' } } };
const own = (name: string) => ({
  type: 'function',
  function: { name, description: 'Reads.', parameters },
});
const OWN = [own('read'), own('write')];

/** Bodies that are parsed at once, and those that are looked through. */
const LENGTHS = { small: 10, large: 300_000 } as const;

async function sent(model: string, more: JsonObject, length: number) {
  upstream.answerWith(() => say('x'));
  const messages = [{ role: 'user', content: 'x'.repeat(length) }];
  const body = { model, messages, ...more };
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  expect([response.status, upstream.refusals]).toEqual([200, []]);
  await response.text();
  const got = upstream.modelRequests.at(-1)!.body as JsonObject;
  return { body, got, notes: response.headers.get('x-hopgate-notes') ?? '' };
}

interface Row {
  readonly given: JsonObject;
  readonly choice: Json;
  readonly more?: JsonObject;
}

// https://platform.claude.com/docs/en/api/messages (ToolChoice), openai-node resources/responses (ToolChoiceFunction …)
const CHOICES: Readonly<Record<string, Row>> = {
  'auto of Anthropic': { given: { type: 'auto' }, choice: 'auto' },
  'any of Anthropic': { given: { type: 'any' }, choice: 'required' },
  'none of Anthropic': { given: { type: 'none' }, choice: 'none' },
  'any of Anthropic, one call at a time': {
    given: { type: 'any', disable_parallel_tool_use: true },
    choice: 'required',
    more: { parallel_tool_calls: false },
  },
  'a tool of Anthropic': {
    given: { type: 'tool', name: 'read' },
    choice: { type: 'function', function: { name: 'read' } },
  },
  'a function of Responses': {
    given: { type: 'function', name: 'read' },
    choice: { type: 'function', function: { name: 'read' } },
  },
  'allowed tools of Responses': {
    given: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'read' }] },
    choice: {
      type: 'allowed_tools',
      allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'read' } }] },
    },
  },
};

const TOOLS: Readonly<Record<string, readonly JsonObject[]>> = {
  'tools of Anthropic': ['read', 'write'].map((name) => ({
    name,
    description: 'Reads.',
    input_schema: parameters,
  })),
  'custom tools of Anthropic': ['read', 'write'].map((name) => ({
    type: 'custom',
    name,
    description: 'Reads.',
    input_schema: parameters,
  })),
  'functions of Responses': ['read', 'write'].map((name) => ({
    type: 'function',
    name,
    description: 'Reads.',
    parameters,
  })),
};

describe.each(Object.keys(LENGTHS) as (keyof typeof LENGTHS)[])('a %s body', (size) => {
  const length = LENGTHS[size];

  for (const [what, { given, choice, more = {} }] of Object.entries(CHOICES)) {
    test(`${what} is a choice of Chat`, async () => {
      const { got, notes } = await sent(
        'm-openai-chat',
        { tools: OWN, tool_choice: given },
        length,
      );
      expect(got).toMatchObject({ tools: OWN, tool_choice: choice, ...more } as never);
      expect(notes).toContain('parameter_mapped');
    });

    test.each(VENDORS)(`${what} means the same as that of Chat at %s`, async (vendor) => {
      const foreign = await sent(`m-${vendor}`, { tools: OWN, tool_choice: given }, length);
      const chats = await sent(`m-${vendor}`, { tools: OWN, tool_choice: choice, ...more }, length);
      expect(foreign.got).toEqual(chats.got);
    });
  }

  for (const [what, tools] of Object.entries(TOOLS)) {
    test.each(VENDORS)(`${what} reach %s with their schemas`, async (vendor) => {
      const foreign = await sent(`m-${vendor}`, { tools }, length);
      const chats = await sent(`m-${vendor}`, { tools: OWN }, length);
      expect(foreign.got).toEqual(chats.got);
      expect(foreign.notes).toContain('parameter_mapped');
    });
  }

  test.each<JsonObject>([
    { tool_choice: 'auto' },
    { tool_choice: { type: 'function', function: { name: 'read' } } },
    { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [OWN[0]!] } } },
  ])('what Chat has of its own goes on as it came: %j', async (more) => {
    const { got, body, notes } = await sent('m-openai-chat', { tools: OWN, ...more }, length);
    expect(got).toEqual(body as never);
    expect(notes).toBe('');
  });
});

test('what a choice means that is not certain is left to the vendor', async () => {
  upstream.answerWith(() => say('x'));
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model: 'm-openai-chat',
      messages: [{ role: 'user', content: 'x' }],
      tools: OWN,
      tool_choice: { type: 'tool' },
    }),
  });
  expect(upstream.modelRequests[0]!.body).toMatchObject({ tool_choice: { type: 'tool' } });
  expect(response.headers.get('x-hopgate-notes') ?? '').toBe('');
});
