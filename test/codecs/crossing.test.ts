/** Requests and answers converted between protocols: what must survive, and what becomes a note. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { Codec } from '../../src/codecs/codec.ts';
import { googleGemini } from '../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../src/conversation/profile-facts.ts';
import { replyEvents } from '../../src/conversation/reply-builder.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

const PROTOCOLS = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  'anthropic-messages': anthropicMessages,
} satisfies Record<ProtocolName, Codec>;

const SMALLEST = {
  'openai-chat': { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  'openai-responses': { model: 'm', input: 'hi' },
  'anthropic-messages': {
    model: 'm',
    max_tokens: 99,
    messages: [{ role: 'user', content: 'hi' }],
  },
} satisfies Record<ProtocolName, JsonObject>;

/** A client's smallest request with more fields, as an upstream of another protocol gets it. */
function sent(
  from: ProtocolName,
  to: ProtocolName,
  fields: JsonObject,
  profile: Partial<Profile> = {},
) {
  const notes = new Notes();
  const body = PROTOCOLS[to].encodeRequest(
    PROTOCOLS[from].decodeRequest({ ...SMALLEST[from], ...fields }),
    { provider: 'p', model: 'm', protocol: to, profile: { ...NO_PROFILE, ...profile } },
    notes,
  );
  return { body: JSON.parse(JSON.stringify(body)), notes: notes.all };
}

const ANSWERS = {
  'openai-chat': {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' },
    ],
  },
  'openai-responses': {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [],
  },
  'anthropic-messages': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'hello' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 2 },
  },
} satisfies Record<ProtocolName, JsonObject>;

/** An upstream's answer with other fields, as a client of another protocol gets it, whole. */
function encodedReply(from: ProtocolName, to: ProtocolName, fields: JsonObject) {
  const notes = new Notes();
  const request = PROTOCOLS[to].decodeRequest(SMALLEST[to]);
  const reply = PROTOCOLS[from].decodeReply(
    { ...ANSWERS[from], ...fields },
    {
      sent: request,
      target: { provider: 'p', model: 'm', protocol: from, profile: NO_PROFILE },
      notes,
    },
  );
  const body = PROTOCOLS[to].encodeReply(reply, {
    request: request,
    requestId: 'req_1',
    provider: 'p',
    notes,
  });
  return { reply, body: JSON.parse(JSON.stringify(body)), notes: notes.all };
}

describe('a choice of allowed tools', () => {
  const get = { type: 'function', name: 'get', parameters: { type: 'object', properties: {} } };
  const requestFor = (name: string) => ({
    tools: [
      { type: 'namespace', name: 'crm', tools: [get, { ...get, name: 'put' }] },
      { ...get, name: 'other' },
    ],
    tool_choice: {
      type: 'allowed_tools',
      mode: 'required',
      tools: [{ type: 'function', name, namespace: 'crm' }],
    },
  });

  test('a choice of one tool in a namespace does not ban all tools on Messages', () => {
    const { body } = sent('openai-responses', 'anthropic-messages', requestFor('get'));
    expect(body.tool_choice).toEqual({ type: 'any' });
    expect(body.tools.map((tool: JsonObject) => tool.name)).toEqual(['crm__get']);
  });

  test('a choice of undeclared tools allows none', () => {
    const { body } = sent('openai-responses', 'anthropic-messages', requestFor('gone'));
    expect(body.tool_choice).toEqual({ type: 'none' });
  });
});

describe('a user id', () => {
  for (const to of ['openai-chat', 'openai-responses'] as const) {
    test(`a user id over OpenAI's limit is not sent to ${to}, with a note`, () => {
      const of = (length: number) =>
        sent('anthropic-messages', to, { metadata: { user_id: 'u'.repeat(length) } });
      expect(of(64)).toMatchObject({ body: { user: 'u'.repeat(64) }, notes: [] });
      const { body, notes } = of(65);
      expect(body.user).toBeUndefined();
      expect(notes).toEqual([{ name: 'parameter_dropped', where: 'user', what: 'too long' }]);
    });
  }

  test.each(['openai-chat', 'openai-responses'] as const)(
    "a user id of %s over Anthropic's limit is not sent to Messages, with a note",
    (from) => {
      const of = (length: number) => sent(from, 'anthropic-messages', { user: 'u'.repeat(length) });
      expect(of(256).body.metadata).toEqual({ user_id: 'u'.repeat(256) });
      const { body, notes } = of(257);
      expect(body.metadata).toBeUndefined();
      expect(notes).toContainEqual({ name: 'parameter_dropped', where: 'user', what: 'too long' });
    },
  );

  test("a Chat client's user id of any length reaches a Chat upstream unchanged", () => {
    const { body, notes } = sent('openai-chat', 'openai-chat', { user: 'u'.repeat(150) });
    expect(body.user).toHaveLength(150);
    expect(notes).toEqual([]);
  });
});

describe('the tier that served an answer', () => {
  const served = (tier: string) => ({
    usage: { input_tokens: 1, output_tokens: 2, service_tier: tier },
  });

  for (const [to, none] of [
    ['openai-chat', undefined],
    ['openai-responses', null],
  ] as const) {
    test(`Anthropic's tier reaches ${to} as an OpenAI tier or not at all`, () => {
      const tier = (name: string) =>
        encodedReply('anthropic-messages', to, served(name)).body.service_tier;
      expect([tier('standard'), tier('priority'), tier('batch')]).toEqual([
        'default',
        'priority',
        none,
      ]);
    });

    test(`Anthropic's tier reaches ${to} as an OpenAI tier in a stream too`, () => {
      const { reply } = encodedReply('anthropic-messages', to, served('standard'));
      const encoder = PROTOCOLS[to].encodeStream({
        request: PROTOCOLS[to].decodeRequest({ ...SMALLEST[to], stream: true }),
        requestId: 'req_1',
        provider: 'p',
        notes: new Notes(),
      });
      const stream = [...replyEvents(reply)].map((event) => encoder.event(event)).join('');
      expect(stream).toContain('"service_tier":"default"');
      expect(stream).not.toContain('"service_tier":"standard"');
    });
  }
});

describe('the grammar of a freeform tool', () => {
  const grammar = { syntax: 'lark', definition: 'start: "a"' };
  // Chat's form; compatible Responses servers accept it too.
  const custom = { name: 't', format: { type: 'grammar', grammar } };
  const fields = { tools: [{ type: 'custom', custom }] };

  for (const from of ['openai-chat', 'openai-responses'] as const) {
    test(`a grammar nested by ${from} is not lost on Messages`, () => {
      const [tool] = sent(from, 'anthropic-messages', fields).body.tools;
      expect(tool.description).toBe('The input follows this grammar:\nstart: "a"');
    });
  }

  test('a grammar nested by a Responses client is not lost on Chat', () => {
    const [tool] = sent('openai-responses', 'openai-chat', fields).body.tools;
    expect(tool.function.description).toBe(
      'The value of "input" must follow this lark grammar:\nstart: "a"',
    );
  });

  test('a grammar nested by Chat goes flat to Responses', () => {
    const [tool] = sent('openai-chat', 'openai-responses', fields).body.tools;
    expect(tool).toEqual({ type: 'custom', name: 't', format: { type: 'grammar', ...grammar } });
  });
});

describe('a citation of a file, which has no address', () => {
  const file = { type: 'file_citation', file_id: 'f1', filename: 'x.pdf', index: 2 };
  const site = {
    type: 'url_citation',
    url: 'https://a.b',
    title: 'T',
    start_index: 0,
    end_index: 2,
  };
  const cited = (...annotations: JsonObject[]) => ({
    output: [
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'hello', annotations }],
      },
    ],
  });

  /** The answer as a stream for a client of this protocol. */
  const streamed = (to: Codec, body: JsonObject) => {
    const name = to.name as ProtocolName;
    const { reply } = encodedReply('openai-responses', name, body);
    const notes = new Notes();
    const request = to.decodeRequest(SMALLEST[name]);
    const encoder = to.encodeStream({ request: request, requestId: 'req_1', provider: 'p', notes });
    return { stream: [...replyEvents(reply)].map((event) => encoder.event(event)).join(''), notes };
  };

  test('it becomes a note for a Messages client, not a web result without an address', () => {
    const { body, notes } = encodedReply('openai-responses', 'anthropic-messages', cited(file));
    expect(body.content).toEqual([{ type: 'text', text: 'hello' }]);
    expect(notes.map(({ name }) => name)).toEqual(['citation_dropped']);
    const both = encodedReply('openai-responses', 'anthropic-messages', cited(file, site)).body
      .content[0];
    expect(both.citations.map((one: JsonObject) => one.url)).toEqual(['https://a.b']);
  });

  test('it becomes a note for a Messages client in a stream too', () => {
    const { stream, notes } = streamed(anthropicMessages, cited(file));
    expect(stream).toContain('hello');
    expect(stream).not.toContain('citations_delta');
    expect(notes.summary()).toBe('citation_dropped');
  });

  test('a Chat client gets a note for it', () => {
    const { body, notes } = encodedReply('openai-responses', 'openai-chat', cited(file, site));
    const { annotations } = body.choices[0].message;
    expect(annotations.map((one: JsonObject) => one.type)).toEqual(['url_citation']);
    expect(notes.map(({ name }) => name)).toEqual(['citation_dropped']);
  });

  test('a Chat client gets a note for it in a stream', () => {
    const { stream, notes } = streamed(openaiChat, cited(file, site));
    expect(stream.match(/"type":"\w+_citation"/g)).toEqual(['"type":"url_citation"']);
    expect(notes.summary()).toBe('citation_dropped');
  });
});

describe("an error of Anthropic's", () => {
  const cases: readonly (readonly [status: number, type: string, message: string, code: string])[] =
    [
      [401, 'authentication_error', 'invalid x-api-key', 'invalid_api_key'],
      [404, 'not_found_error', 'model: x', 'model_not_found'],
      [429, 'rate_limit_error', 'slow', 'rate_limit_exceeded'],
      [
        400,
        'invalid_request_error',
        'Your credit balance is too low',
        'billing_hard_limit_reached',
      ],
    ];
  const code = (to: ProtocolName, status: number, type: string, message: string) => {
    const body = JSON.stringify({ type: 'error', error: { type, message } });
    const error = anthropicMessages.decodeError(status, body, new Headers());
    const { error: content } = PROTOCOLS[to].encodeError(error, 'req_1').body;
    return (content as JsonObject).code;
  };

  for (const [status, type, message, expected] of cases) {
    test(`the type ${type} is not the code of a Chat error`, () => {
      expect(code('openai-chat', status, type, message)).toBe(expected);
    });
  }

  test('the type is not the code of a Responses error', () => {
    expect(code('openai-responses', 401, 'authentication_error', 'x')).toBe('invalid_api_key');
    expect(code('openai-responses', 404, 'not_found_error', 'model: x')).toBe(null);
  });

  test("a vendor's code in place of the type stays", () => {
    expect(code('openai-chat', 400, '1210', 'x')).toBe('1210');
  });
});

describe('a failed tool that said nothing has failed at every vendor', () => {
  const failed = (content: JsonObject) => ({
    tools: [{ name: 'f', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', is_error: true, ...content }],
      },
    ],
  });
  const CONTENTS = [
    {},
    { content: '' },
    { content: [] },
    { content: [{ type: 'text', text: '' }] },
  ];
  test.each(CONTENTS)('%p', (content) => {
    const conversation = anthropicMessages.decodeRequest({
      ...SMALLEST['anthropic-messages'],
      ...failed(content),
    });
    for (const codec of [openaiChat, openaiResponses, googleGemini]) {
      const target = { provider: 'p', model: 'm', protocol: codec.name, profile: NO_PROFILE };
      const body = codec.encodeRequest(conversation, target, new Notes());
      expect([codec.name, JSON.stringify(body)]).toEqual([
        codec.name,
        expect.stringMatching(/[Ee]rror\W{2,4}The tool failed without a message\./),
      ]);
    }
  });
});
