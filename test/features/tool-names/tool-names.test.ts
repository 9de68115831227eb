/** A vendor that refuses the names of tools gets others, and the client gets its own back: every client, streamed and whole. */

import { describe, expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { clientToolNames, vendorToolNames } from '../../../src/features/tool-names/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const FEATURES = [clientToolNames, refusalRetry(), vendorFit(), vendorToolNames];
const LONG = `mcp__plugin_jenkins-mcp-plugin_jenkins__jenkins_get_build_console_of_the_last_run`;
const OTHER = LONG.replace('last', 'best');
const ODD = '3d.render/图';
const NAMES = [LONG, OTHER, ODD, 'read'];
const SENT = /^[a-zA-Z_][\w-]{0,63}$/;
const schema = { type: 'object', properties: {} };

/** A session that has called the long tool, and forces it once more. */
const BODIES: Readonly<Record<ProtocolName, (stream: boolean) => JsonObject>> = {
  'openai-chat': (stream) => ({
    model: 'm',
    stream,
    tools: NAMES.map((name) => ({ type: 'function', function: { name, parameters: schema } })),
    tool_choice: { type: 'function', function: { name: LONG } },
    messages: [
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: LONG, arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'ok' },
    ],
  }),
  'openai-responses': (stream) => ({
    model: 'm',
    stream,
    tools: NAMES.map((name) => ({ type: 'function', name, parameters: schema, strict: false })),
    tool_choice: { type: 'function', name: LONG },
    input: [
      { role: 'user', content: 'go' },
      { type: 'function_call', call_id: 'c1', name: LONG, arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'ok' },
    ],
  }),
  'anthropic-messages': (stream) => ({
    model: 'm',
    stream,
    max_tokens: 99,
    tools: NAMES.map((name) => ({ name, input_schema: schema })),
    tool_choice: { type: 'tool', name: LONG },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: LONG, input: {} }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'c1',
            content: [{ type: 'tool_reference', tool_name: OTHER }],
          },
        ],
      },
    ],
  }),
  'google-gemini': (stream) => ({
    model: 'm',
    stream,
    tools: [
      { functionDeclarations: NAMES.map((name) => ({ name, parametersJsonSchema: schema })) },
    ],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [LONG] } },
    contents: [
      { role: 'user', parts: [{ text: 'go' }] },
      { role: 'model', parts: [{ functionCall: { name: LONG, args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: LONG, response: { result: 'ok' } } }] },
    ],
  }),
};

const WORDS: Readonly<Record<ProtocolName, JsonObject>> = {
  'openai-chat': {
    error: {
      message:
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 80 instead.",
      type: 'invalid_request_error',
      param: 'tools[0].function.name',
      code: 'string_above_max_length',
    },
  },
  'openai-responses': {
    error: {
      message:
        "Invalid 'tools[0].name': string too long. Expected a string with maximum length 64, but got a string with length 80 instead.",
      type: 'invalid_request_error',
      param: 'tools[0].name',
      code: 'string_above_max_length',
    },
  },
  'anthropic-messages': {
    type: 'error',
    error: {
      type: 'invalid_request_error',
      message: 'tools.0.custom.name: String should have at most 64 characters',
    },
  },
  'google-gemini': {
    error: {
      code: 400,
      message:
        '* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.) or dashes (-), with a maximum length of 64.\n',
      status: 'INVALID_ARGUMENT',
    },
  },
};

const data = (...frames: readonly (JsonObject | string)[]) =>
  frames.map((one) => `data: ${typeof one === 'string' ? one : JSON.stringify(one)}\n\n`);
const events = (...frames: readonly JsonObject[]) =>
  frames.map((one) => `event: ${String(one.type)}\ndata: ${JSON.stringify(one)}\n\n`);

/** The vendor's call of this tool. */
const CALLS: Readonly<Record<ProtocolName, (name: string, stream: boolean) => Scripted>> = {
  'openai-chat': (name, stream) => {
    const base = { id: 'c', object: 'chat.completion', created: 1, model: 'm' };
    const call = { id: 'c2', type: 'function', function: { name, arguments: '{}' } };
    if (!stream) {
      const message = { role: 'assistant', content: null, tool_calls: [call] };
      return { json: { ...base, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] } };
    }
    const chunk = (delta: JsonObject, finish_reason: string | null = null) => ({
      ...base,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason }],
    });
    return {
      sse: data(
        chunk({ role: 'assistant', tool_calls: [{ index: 0, ...call }] }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
    };
  },
  'openai-responses': (name, stream) => {
    const item = { id: 'fc_1', type: 'function_call', call_id: 'c2', name, arguments: '{}' };
    const response = { id: 'r', object: 'response', created_at: 1, model: 'm' };
    const whole = { ...response, status: 'completed', output: [item] };
    if (!stream) return { json: whole };
    return {
      sse: events(
        { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
        { type: 'response.output_item.added', output_index: 0, item: { ...item, arguments: '' } },
        {
          type: 'response.function_call_arguments.delta',
          item_id: 'fc_1',
          output_index: 0,
          delta: '{}',
        },
        {
          type: 'response.function_call_arguments.done',
          item_id: 'fc_1',
          output_index: 0,
          arguments: '{}',
        },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: whole },
      ),
    };
  },
  'anthropic-messages': (name, stream) => {
    const message = { id: 'msg', type: 'message', role: 'assistant', model: 'm' };
    const usage = { input_tokens: 1, output_tokens: 1 };
    const block = { type: 'tool_use', id: 'c2', name, input: {} };
    if (!stream) {
      return {
        json: { ...message, content: [block], stop_reason: 'tool_use', stop_sequence: null, usage },
      };
    }
    return {
      sse: events(
        { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } },
        { type: 'content_block_start', index: 0, content_block: block },
        {
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'input_json_delta', partial_json: '{}' },
        },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage },
        { type: 'message_stop' },
      ),
    };
  },
  'google-gemini': (name, stream) => {
    const answer = {
      candidates: [
        {
          index: 0,
          content: { role: 'model', parts: [{ functionCall: { name, args: {} } }] },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
    return stream ? { sse: data(answer) } : { json: answer };
  },
};

const PROTOCOLS = Object.keys(BODIES) as ProtocolName[];

/** Every name of a tool in a body that was sent. */
function namesIn(value: unknown, key = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => namesIn(one, key));
  if (typeof value === 'string') {
    return /^(?:name|tool_name|allowedFunctionNames)$/.test(key) ? [value] : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => namesIn(member, name));
}

describe.each(PROTOCOLS)('%s vendor', (vendor) => {
  for (const client of PROTOCOLS) {
    test.each([false, true])(`${client} client, streamed: %p`, async (stream) => {
      const script: Scripted[] = [{ status: 400, json: WORDS[vendor] }];
      const gateway = scriptedGateway(vendor, script, FEATURES);
      // The vendor calls whatever the long tool is called there.
      const answer = () => {
        const sent = namesIn(gateway.sent.at(-1)).filter((name) => name.endsWith('last_run'));
        return CALLS[vendor](sent[0]!, stream);
      };
      const push = gateway.sent.push.bind(gateway.sent);
      gateway.sent.push = (body) => {
        const size = push(body);
        if (size > 1 || vendor !== client) script.splice(0, script.length, answer());
        return size;
      };
      for (const turn of [1, 2]) {
        const { status, text } = await gateway.ask(client, BODIES[client](stream));
        expect({ turn, status }).toEqual({ turn, status: 200 });
        expect(text).toContain(`"name":"${LONG}"`);
        expect(text).not.toContain('"name":"t');
      }
      // Within one protocol the first request goes out as it came.
      const [first, ...later] = gateway.sent;
      const all = vendor === client ? later : [first, ...later];
      expect(all).toHaveLength(2);
      for (const body of all) {
        const names = namesIn(body);
        expect([...new Set(names)]).toHaveLength(NAMES.length);
        for (const name of names) expect(name).toMatch(vendor === client ? SENT : /^.{1,128}$/);
      }
      if (vendor === client) expect(namesIn(first)).toContain(LONG);
    });
  }
});

const RESERVED = 'web_search';
/** The same session with a name that the vendor keeps for its own, beside one that it would get instead. */
const reservedBody = (client: ProtocolName, stream: boolean): JsonObject =>
  JSON.parse(
    JSON.stringify(BODIES[client](stream))
      .replaceAll(LONG, RESERVED)
      .replaceAll('"read"', `"my_${RESERVED}"`),
  );
const reservedWords = (vendor: ProtocolName): JsonObject => {
  const message = `invalid request: invalid tools in request: custom function name "${RESERVED}" is reserved`;
  const { error } = WORDS[vendor] as { error: JsonObject };
  return { ...WORDS[vendor], error: { ...error, message, param: null, code: error.code ?? null } };
};

describe.each(PROTOCOLS)('%s vendor that keeps a name for its own', (vendor) => {
  for (const client of PROTOCOLS) {
    test.each([false, true])(`${client} client, streamed: %p`, async (stream) => {
      const refused = { status: 400, json: reservedWords(vendor) };
      const called = CALLS[vendor](`my_my_${RESERVED}`, stream);
      const gateway = scriptedGateway(vendor, [refused, called, called], FEATURES);
      for (const turn of [1, 2]) {
        const { status, text } = await gateway.ask(client, reservedBody(client, stream));
        expect({ turn, status }).toEqual({ turn, status: 200 });
        expect(text).toContain(`"name":"${RESERVED}"`);
        expect(text).not.toContain(`my_my_${RESERVED}`);
      }
      const [first, ...later] = gateway.sent;
      expect(namesIn(first)).toContain(RESERVED);
      // It is remembered: the second turn is refused no more.
      expect(later).toHaveLength(2);
      for (const body of later) {
        const names = namesIn(body);
        expect(names).not.toContain(RESERVED);
        expect(names.filter((name) => name === `my_my_${RESERVED}`).length).toBeGreaterThan(1);
        expect(new Set(names)).toContain(`my_${RESERVED}`);
      }
    });
  }
});
