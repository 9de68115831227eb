/** A request, a stream and a reply of each protocol with most of their fields, and mutants with inherited names. */

import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

const schema = {
  type: 'object',
  properties: { path: { type: 'string', format: 'uri' } },
  anyOf: [{ required: ['path'], properties: { path: { type: 'string' } } }],
};

export const BODIES: Readonly<Record<ProtocolName, JsonObject>> = {
  'openai-chat': {
    model: 'm',
    stream: true,
    reasoning_effort: 'high',
    tool_choice: { type: 'function', function: { name: 'read' } },
    metadata: { session: 's' },
    service_tier: 'auto',
    tools: [{ type: 'function', function: { name: 'read', parameters: schema } }],
    response_format: { type: 'json_schema', json_schema: { name: 'out', schema } },
    messages: [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: [{ type: 'text', text: 'read it' }] },
      {
        role: 'assistant',
        content: null,
        reasoning_details: [{ type: 'reasoning.text', text: 'hm', format: 'x' }],
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '{"output":"x","exit_code":0}' },
    ],
  },
  'openai-responses': {
    model: 'm',
    stream: true,
    reasoning: { effort: 'high', summary: 'auto' },
    tool_choice: { type: 'function', name: 'read' },
    include: ['reasoning.encrypted_content'],
    tools: [
      { type: 'function', name: 'read', parameters: schema },
      { type: 'custom', name: 'patch', format: { type: 'text' } },
      { type: 'web_search', search_context_size: 'low' },
    ],
    text: { format: { type: 'json_schema', name: 'out', schema }, verbosity: 'low' },
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'read it' }] },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }] },
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'read', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'x' },
      { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: 'x' },
      { type: 'custom_tool_call_output', call_id: 'c2', output: 'x' },
      {
        type: 'web_search_call',
        id: 'ws_1',
        status: 'completed',
        action: { type: 'search', query: 'q' },
      },
    ],
  },
  'anthropic-messages': {
    model: 'm',
    max_tokens: 9000,
    stream: true,
    system: [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral' } }],
    thinking: { type: 'enabled', budget_tokens: 2000 },
    output_config: { effort: 'high', format: { type: 'json_schema', schema } },
    metadata: { user_id: 'u' },
    tool_choice: { type: 'tool', name: 'read' },
    tools: [
      { name: 'read', input_schema: schema },
      { type: 'web_search_20250305', name: 'web_search' },
    ],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'read it' }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 'sig' },
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
          {
            type: 'web_search_tool_result',
            tool_use_id: 'srvtoolu_1',
            content: [
              {
                type: 'web_search_result',
                url: 'https://a.test',
                title: 'A',
                encrypted_content: 'e',
              },
            ],
          },
          { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'a' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'x' }] },
        ],
      },
    ],
  },
};

const item = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'in_progress',
  content: [],
};
const response = { id: 'resp_1', object: 'response', model: 'm', status: 'completed', output: [] };

/** The JSON of the frames, one stream each. */
export const STREAMS: Readonly<Record<ProtocolName, readonly JsonObject[]>> = {
  'openai-chat': [
    {
      id: 'c',
      object: 'chat.completion.chunk',
      model: 'm',
      choices: [{ index: 0, delta: { role: 'assistant', content: 'hi' } }],
    },
    {
      id: 'c',
      choices: [
        {
          index: 0,
          delta: {
            reasoning_details: [{ type: 'reasoning.text', text: 'hm' }],
            tool_calls: [{ index: 0, id: 'k', type: 'function', function: { name: 'read' } }],
          },
        },
      ],
    },
    {
      id: 'c',
      choices: [
        {
          index: 0,
          delta: { tool_calls: [{ index: 0, function: { arguments: '{"path":"a"}' } }] },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 2, prompt_tokens_details: {} },
    },
  ],
  'openai-responses': [
    { type: 'response.created', response: { ...response, status: 'in_progress' } },
    { type: 'response.output_item.added', output_index: 0, item },
    {
      type: 'response.content_part.added',
      output_index: 0,
      item_id: 'msg_1',
      content_index: 0,
      part: { type: 'output_text', text: '' },
    },
    {
      type: 'response.output_text.delta',
      output_index: 0,
      item_id: 'msg_1',
      content_index: 0,
      delta: 'hi',
    },
    {
      type: 'response.output_item.done',
      output_index: 0,
      item: {
        ...item,
        status: 'completed',
        content: [{ type: 'output_text', text: 'hi', annotations: [] }],
      },
    },
    {
      type: 'response.completed',
      response: { ...response, usage: { input_tokens: 1, output_tokens: 2 } },
    },
  ],
  'anthropic-messages': [
    {
      type: 'message_start',
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        usage: { input_tokens: 1, output_tokens: 1 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'tool_use', id: 'toolu_1', name: 'read', input: {} },
    },
    {
      type: 'content_block_delta',
      index: 1,
      delta: { type: 'input_json_delta', partial_json: '{}' },
    },
    { type: 'content_block_stop', index: 1 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { output_tokens: 9, server_tool_use: { web_search_requests: 1 } },
    },
    { type: 'message_stop' },
  ],
};

export const REPLIES: Readonly<Record<ProtocolName, JsonObject>> = {
  'openai-chat': {
    id: 'c',
    object: 'chat.completion',
    model: 'm',
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: [{ type: 'text', text: 'hi' }],
          reasoning_details: [{ type: 'reasoning.text', text: 'hm' }],
          tool_calls: [
            { id: 'k', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 2 },
  },
  'openai-responses': {
    ...response,
    usage: { input_tokens: 1, output_tokens: 2 },
    output: [
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }] },
      {
        ...item,
        status: 'completed',
        content: [{ type: 'output_text', text: 'hi', annotations: [] }],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'read', arguments: '{}' },
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search' } },
    ],
  },
  'anthropic-messages': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [
      { type: 'thinking', thinking: 'hm', signature: 'sig' },
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
      { type: 'text', text: 'hi' },
      { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'a' } },
    ],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 9, server_tool_use: { web_search_requests: 1 } },
  },
};

const ODD = ['__proto__', 'constructor', 'toString'];

/**
 * Variants of the value, one per text and per object in it: the text becomes an inherited name, or a member with such
 * a name is added.
 */
export function mutants(value: Json): readonly (readonly [what: string, mutant: Json])[] {
  const out: (readonly [string, Json])[] = [];
  const walk = (at: Json, path: string, rebuild: (inner: Json) => Json) => {
    if (typeof at === 'string') {
      for (const name of ODD) out.push([`${path} is ${name}`, rebuild(name)]);
    } else if (Array.isArray(at)) {
      at.forEach((inner, i) => {
        walk(inner as Json, `${path}/${i}`, (now) =>
          rebuild(at.map((one, j) => (i === j ? now : one)) as Json),
        );
      });
    } else if (typeof at === 'object' && at !== null) {
      const members = Object.entries(at) as [string, Json][];
      for (const name of ODD) {
        const more = Object.fromEntries([...members, [name, { kept: name }]]);
        out.push([`${path} has ${name}`, rebuild(more)]);
      }
      for (const [key, inner] of members) {
        walk(inner, `${path}/${key}`, (now) => {
          const changed = members.map(([k, old]) => [k, k === key ? now : old] as const);
          return rebuild(Object.fromEntries(changed));
        });
      }
    }
  };
  walk(value, '', (now) => now);
  return out;
}
