/** Every codec reads and writes in linear time, even hostile requests, replies and streams. */

import { describe, test } from 'bun:test';
import { lintRequest as lintMessages } from '../../src/codecs/anthropic-messages/lint/lint-request.ts';
import { lintStream as lintMessagesStream } from '../../src/codecs/anthropic-messages/lint/lint-stream.ts';
import { lintRequest as lintChat } from '../../src/codecs/openai-chat/lint/lint-request.ts';
import { lintStream as lintChatStream } from '../../src/codecs/openai-chat/lint/lint-stream.ts';
import { lintRequest as lintResponses } from '../../src/codecs/openai-responses/lint/lint-request.ts';
import { lintStream as lintResponsesStream } from '../../src/codecs/openai-responses/lint/lint-stream.ts';
import type { StreamEvent } from '../../src/conversation/events.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { NO_PROFILE, type Profile } from '../../src/conversation/profile-facts.ts';
import type { Target } from '../../src/conversation/target.ts';
import type { Conversation } from '../../src/conversation/types.ts';
import { type SseFrame, SseParser } from '../../src/lib/bytes/sse.ts';
import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import { PROTOCOLS } from '../features/tool-pairing/support.ts';
import { expectLinear } from '../support/growth.ts';
import type { SuiteProtocol as ProtocolName } from '../support/suite-protocols.ts';

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];
const LINT = {
  'anthropic-messages': lintMessages,
  'openai-chat': lintChat,
  'openai-responses': lintResponses,
} as const;
const LINT_STREAM = {
  'anthropic-messages': lintMessagesStream,
  'openai-chat': lintChatStream,
  'openai-responses': lintResponsesStream,
} as const;
/** Characters of the largest request or answer in these tests. */
const MAX = 1024 * 1024;
const TIME = 120_000;

/** Every profile fact that makes a codec do more. */
const FULL: Profile = {
  name: 'full',
  rootUnions: false,
  maxTokensParam: 'max_completion_tokens',
  reasoningField: 'reasoning_content',
  images: false,
  developerRole: false,
  strictTools: false,
  hostedTools: ['web_search'],
  toolChoices: ['auto', 'none', 'required'],
  dropParams: ['a', 'b', 'c'],
  renameParams: { d: 'e' },
};
const target = (protocol: ProtocolName, profile: Profile): Target => ({
  provider: 'p',
  model: 'm',
  protocol,
  profile,
});
const list = <T>(n: number, make: (i: number) => T): T[] =>
  Array.from({ length: Math.max(1, Math.floor(n)) }, (_, i) => make(i));
const deep = (n: number, wrap: (inner: JsonObject) => JsonObject): JsonObject => {
  let value: JsonObject = { type: 'string' };
  for (let i = 0; i < n; i++) value = wrap(value);
  return value;
};
/** No parser here goes deeper. */
const DEEP = 400;

/** A string member of a body: the hostile values. */
const STRINGS: Readonly<Record<string, (size: number) => string>> = {
  escapes: (size) => '\n"\\'.repeat(size / 3),
  spaces: (size) => `a${' '.repeat(size)}b${' '.repeat(size)}`,
  'a data URL': (size) => `data:image/png;base64,${'A'.repeat(size)}`,
  'a data URL of parameters': (size) => `data:image/png${';a=b'.repeat(size / 4)};base64,AAAA`,
  dots: (size) => '.'.repeat(size),
  'a carrier': (size) => `hopgate1.cs.p.${'A'.repeat(size)}`,
  'carriers in a row': (size) => 'hopgate1.cs.p.AA.'.repeat(size / 17),
  'odd characters': (size) => '调\u0000.:'.repeat(size / 4),
  'a broken object': (size) => '{"a":['.repeat(size / 6),
  'an object': (size) => JSON.stringify(Object.fromEntries(list(size / 12, (i) => [`k${i}`, 1]))),
};

const user = (content: Json): JsonObject => ({ role: 'user', content });
const fn = (name: string, parameters: JsonObject): JsonObject => ({
  type: 'function',
  function: { name, parameters },
});
const call = (id: string, name: string, args: string): JsonObject => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

/** Chat requests of about `n` characters. */
const CHAT: Readonly<Record<string, (n: number) => JsonObject>> = {
  messages: (n) => ({
    messages: list(n / 40, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: 'a' })),
  }),
  'messages of one role': (n) => ({ messages: list(n / 40, () => user('a')) }),
  instructions: (n) => ({
    messages: [...list(n / 40, () => ({ role: 'system', content: 'a' })), user('b')],
  }),
  parts: (n) => ({ messages: [user(list(n / 40, () => ({ type: 'text', text: 'a' })))] }),
  'parts of an answer': (n) => ({
    messages: [
      user('a'),
      { role: 'assistant', content: list(n / 40, () => ({ type: 'text', text: 'a' })) },
    ],
  }),
  images: (n) => ({
    messages: [
      user(
        list(n / 70, () => ({ type: 'image_url', image_url: { url: 'data:image/png;base64,A' } })),
      ),
    ],
  }),
  calls: (n) => ({
    messages: [
      user('a'),
      {
        role: 'assistant',
        content: null,
        tool_calls: list(n / 120, (i) => call(`c${i}`, 'f', '{}')),
      },
      ...list(n / 120, (i) => ({ role: 'tool', tool_call_id: `c${i}`, content: 'x' })),
    ],
  }),
  'calls of many names': (n) => ({
    messages: [
      user('a'),
      {
        role: 'assistant',
        content: null,
        tool_calls: list(n / 80, (i) => call(`c${i}`, `f.${i}`, '{}')),
      },
    ],
  }),
  tools: (n) => ({
    messages: [user('a')],
    tools: list(n / 80, (i) => fn(`f${i}`, { type: 'object' })),
  }),
  'tools, and a choice of all of them': (n) => ({
    messages: [user('a')],
    tools: list(n / 160, (i) => fn(`f${i}`, { type: 'object' })),
    tool_choice: {
      type: 'allowed_tools',
      allowed_tools: {
        mode: 'auto',
        tools: list(n / 160, (i) => ({ type: 'function', function: { name: `f${i}` } })),
      },
    },
  }),
  'a wide schema': (n) => ({
    messages: [user('a')],
    tools: [
      fn('f', {
        type: 'object',
        properties: Object.fromEntries(list(n / 24, (i) => [`p${i}`, { type: 'string' }])),
      }),
    ],
  }),
  'branches at the root of a schema': (n) => ({
    messages: [user('a')],
    tools: [
      fn('f', {
        anyOf: list(Math.sqrt(n) / 4, (i) => ({
          type: 'object',
          properties: { [`p${i}`]: {} },
          required: list(Math.sqrt(n) / 4, (k) => `r${k}`),
        })),
      }),
    ],
  }),
  'an output schema': (n) => ({
    messages: [user('a')],
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'a',
        schema: {
          type: 'object',
          properties: Object.fromEntries(list(n / 40, (i) => [`p${i}`, { minimum: 1, not: {} }])),
        },
      },
    },
  }),
  'a deep schema': (n) => ({
    messages: [user('a')],
    tools: list(n / 9000, (i) =>
      fn(
        `f${i}`,
        deep(DEEP, (a) => ({ type: 'object', properties: { a } })),
      ),
    ),
  }),
  'reasoning details': (n) => ({
    messages: [
      user('a'),
      {
        role: 'assistant',
        content: 'b',
        reasoning_details: list(n / 60, (i) => ({ type: 'reasoning.text', text: 'a', index: i })),
      },
    ],
  }),
  annotations: (n) => ({
    messages: [
      user('a'),
      {
        role: 'assistant',
        content: 'b',
        annotations: list(n / 90, () => ({
          type: 'url_citation',
          url_citation: { url: 'u', title: 't' },
        })),
      },
    ],
  }),
  'unknown parameters': (n) => ({
    messages: [user('a')],
    ...Object.fromEntries(list(n / 12, (i) => [`x_${i}`, 1])),
  }),
  stops: (n) => ({ messages: [user('a')], stop: list(n / 8, (i) => `s${i}`) }),
};

const use = (id: string): JsonObject => ({ type: 'tool_use', id, name: 'f', input: {} });
const MESSAGES: Readonly<Record<string, (n: number) => JsonObject>> = {
  'system blocks': (n) => ({
    system: list(n / 40, () => ({ type: 'text', text: 'a' })),
    messages: [user('a')],
  }),
  blocks: (n) => ({ messages: [user(list(n / 40, () => ({ type: 'text', text: 'a' })))] }),
  messages: (n) => ({
    messages: list(n / 40, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: 'a' })),
  }),
  'instructions in the middle': (n) => ({
    messages: list(n / 40, (i) => ({ role: i % 2 ? 'system' : 'user', content: 'a' })),
  }),
  'calls and results': (n) => ({
    messages: [
      user('a'),
      { role: 'assistant', content: list(n / 130, (i) => use(`t${i}`)) },
      user(list(n / 130, (i) => ({ type: 'tool_result', tool_use_id: `t${i}`, content: 'x' }))),
    ],
  }),
  'a result of many parts': (n) => ({
    messages: [
      user('a'),
      { role: 'assistant', content: [use('t')] },
      user([
        {
          type: 'tool_result',
          tool_use_id: 't',
          is_error: true,
          content: list(n / 40, () => ({ type: 'text', text: 'a' })),
        },
      ]),
    ],
  }),
  thinking: (n) => ({
    messages: [
      user('a'),
      {
        role: 'assistant',
        content: list(n / 60, () => ({
          type: 'thinking',
          thinking: 'a',
          signature: 'hopgate1.cs.p.AA',
        })),
      },
    ],
  }),
  'server tools': (n) => ({
    messages: [
      user('a'),
      ...list(n / 170, (i) => ({
        role: 'assistant',
        content: [
          {
            type: 'server_tool_use',
            id: `srvtoolu_${i}`,
            name: 'web_search',
            input: { query: 'a' },
          },
          { type: 'web_search_tool_result', tool_use_id: `srvtoolu_${i}`, content: [] },
        ],
      })),
    ],
  }),
  citations: (n) => ({
    messages: [
      user('a'),
      {
        role: 'assistant',
        content: [
          {
            type: 'text',
            text: 'a',
            citations: list(n / 70, () => ({
              type: 'web_search_result_location',
              url: 'u',
              cited_text: 'c',
            })),
          },
        ],
      },
    ],
  }),
  tools: (n) => ({
    messages: [user('a')],
    tools: list(n / 50, (i) => ({ name: `f${i}`, input_schema: { type: 'object' } })),
  }),
  'tools of one name': (n) => ({
    messages: [user('a')],
    tools: list(n / 50, () => ({ name: 'f', input_schema: { type: 'object' } })),
  }),
};

const RESPONSES: Readonly<Record<string, (n: number) => JsonObject>> = {
  items: (n) => ({
    input: list(n / 40, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: 'a' })),
  }),
  'items of the assistant': (n) => ({
    input: list(n / 40, () => ({ role: 'assistant', content: 'a' })),
  }),
  'calls, then outputs': (n) => ({
    input: [
      ...list(n / 140, (i) => ({
        type: 'function_call',
        call_id: `c${i}`,
        name: 'f',
        arguments: '{}',
      })),
      ...list(n / 140, (i) => ({ type: 'function_call_output', call_id: `c${i}`, output: 'x' })),
    ],
  }),
  reasoning: (n) => ({
    input: list(n / 60, (i) => ({ type: 'reasoning', id: `rs_${i}`, summary: [] })),
  }),
  'reasoning of many parts': (n) => ({
    input: [
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: list(n / 40, () => ({ type: 'summary_text', text: 'a' })),
      },
      { role: 'assistant', content: 'b' },
    ],
  }),
  'hosted calls': (n) => ({
    input: list(n / 90, (i) => ({
      type: 'web_search_call',
      id: `ws_${i}`,
      status: 'completed',
      action: { type: 'search', query: 'a' },
    })),
  }),
  'tools of many namespaces': (n) => ({
    input: 'a',
    tools: list(n / 110, (i) => ({
      type: 'namespace',
      name: `n${i}`,
      tools: [{ type: 'function', name: 'f', parameters: {} }],
    })),
  }),
  'tools in items': (n) => ({
    input: [
      {
        type: 'additional_tools',
        role: 'developer',
        tools: list(n / 50, (i) => ({ type: 'function', name: `f${i}`, parameters: {} })),
      },
      { role: 'user', content: 'a' },
    ],
  }),
  'tools, and a choice of all of them': (n) => ({
    input: 'a',
    tools: list(n / 90, (i) => ({ type: 'function', name: `f${i}`, parameters: {} })),
    tool_choice: {
      type: 'allowed_tools',
      mode: 'auto',
      tools: list(n / 90, (i) => ({ type: 'function', name: `f${i}` })),
    },
  }),
};

const withModel = (from: ProtocolName, body: JsonObject): JsonObject => ({
  model: 'm',
  ...(from === 'anthropic-messages' ? { max_tokens: 99 } : {}),
  ...body,
});

/** The same hostile text in every place of a request that holds one. */
function everywhere(from: ProtocolName, text: string): JsonObject {
  switch (from) {
    case 'openai-chat':
      return {
        user: text,
        messages: [
          { role: 'system', content: text },
          user([
            { type: 'text', text },
            { type: 'image_url', image_url: { url: text } },
          ]),
          {
            role: 'assistant',
            content: text,
            reasoning_content: text,
            reasoning_details: [{ type: 'reasoning.encrypted', data: text }],
            tool_calls: [call(text, text, text)],
          },
          { role: 'tool', tool_call_id: text, content: text },
        ],
        tools: [fn(text, { description: text })],
        tool_choice: { type: 'function', function: { name: text } },
      };
    case 'openai-responses':
      return {
        instructions: text,
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_text', text },
              { type: 'input_image', image_url: text },
              { type: 'input_file', filename: text, file_data: text },
            ],
          },
          { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: text },
          { type: 'function_call', call_id: text, name: text, arguments: text },
          { type: 'function_call_output', call_id: text, output: text },
        ],
        tools: [
          { type: 'function', name: text, parameters: {} },
          {
            type: 'custom',
            name: `b${text}`,
            format: { type: 'grammar', syntax: 'lark', definition: text },
          },
        ],
      };
    case 'anthropic-messages':
      return {
        system: text,
        metadata: { user_id: text },
        messages: [
          user([
            { type: 'text', text },
            { type: 'image', source: { type: 'url', url: text } },
            {
              type: 'document',
              source: { type: 'text', media_type: 'text/plain', data: text },
              title: text,
            },
          ]),
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: text, signature: text },
              { type: 'text', text },
              { type: 'tool_use', id: text, name: text, input: { text } },
            ],
          },
          user([{ type: 'tool_result', tool_use_id: text, content: text }]),
        ],
        tools: [{ name: text, description: text, input_schema: { type: 'object' } }],
      };
  }
}

const REQUESTS = [
  ['openai-chat', CHAT],
  ['anthropic-messages', MESSAGES],
  ['openai-responses', RESPONSES],
] as const;

for (const [from, shapes] of REQUESTS) {
  const all: Record<string, (n: number) => JsonObject> = { ...shapes };
  for (const [what, make] of Object.entries(STRINGS)) {
    all[`strings: ${what}`] = (n) => everywhere(from, make(n / 12));
  }
  describe(`requests of ${from}`, () => {
    for (const [what, make] of Object.entries(all)) {
      test(
        what,
        () =>
          expectLinear({
            name: `${from}: ${what}`,
            most: MAX,
            input: (size) => withModel(from, make(size)),
            run: (body) => {
              LINT[from](body);
              const conversation = PROTOCOLS[from].decodeRequest(body);
              // Encoded anew, as after a change.
              const turns = conversation.turns.map(({ wire: _, ...turn }) => turn);
              const changed: Conversation = {
                ...conversation,
                turns,
                tools: [...conversation.tools],
              };
              for (const to of NAMES) {
                PROTOCOLS[to].encodeRequest(changed, target(to, FULL), new Notes());
              }
            },
          }),
        TIME,
      );
    }
  });
}

const chatReply = (message: JsonObject, more: JsonObject = {}): JsonObject => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
  ...more,
});
const messageReply = (content: Json): JsonObject => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
});
const response = (output: Json): JsonObject => ({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'm',
  output,
});

const REPLIES: Readonly<Record<ProtocolName, Readonly<Record<string, (n: number) => JsonObject>>>> =
  {
    'openai-chat': {
      calls: (n) =>
        chatReply({ content: null, tool_calls: list(n / 90, (i) => call(`c${i}`, 'f', '{}')) }),
      parts: (n) =>
        chatReply({
          content: list(n / 40, (i) => ({
            type: i % 2 ? 'text' : 'thinking',
            text: 'a',
            thinking: 'b',
          })),
        }),
      'parts of one kind': (n) =>
        chatReply({ content: list(n / 40, () => ({ type: 'text', text: 'a' })) }),
      images: (n) =>
        chatReply({
          content: '',
          images: list(n / 60, () => ({
            type: 'image_url',
            image_url: { url: 'data:image/png;base64,A' },
          })),
        }),
      citations: (n) =>
        chatReply({
          content: 'a',
          annotations: list(n / 80, () => ({
            type: 'url_citation',
            url_citation: { url: 'u', title: 't' },
          })),
        }),
      sources: (n) => chatReply({ content: 'a' }, { citations: list(n / 12, (i) => `u${i}`) }),
      'reasoning details': (n) =>
        chatReply({
          content: 'a',
          reasoning_details: list(n / 60, () => ({
            type: 'reasoning.text',
            text: 'a',
            signature: 's',
          })),
        }),
      choices: (n) => ({
        ...chatReply({}),
        choices: list(n / 60, (i) => ({ index: n - i, message: { content: 'a' } })),
      }),
    },
    'anthropic-messages': {
      blocks: (n) => messageReply(list(n / 40, () => ({ type: 'text', text: 'a' }))),
      calls: (n) => messageReply(list(n / 70, (i) => use(`t${i}`))),
      'hosted calls': (n) =>
        messageReply(
          list(n / 80, (i) => ({
            type: 'server_tool_use',
            id: `srvtoolu_${i}`,
            name: 'web_search',
            input: {},
          })),
        ),
      citations: (n) =>
        messageReply([
          {
            type: 'text',
            text: 'a'.repeat(n / 10),
            citations: list(n / 90, () => ({
              type: 'web_search_result_location',
              url: 'u',
              cited_text: 'c',
            })),
          },
        ]),
    },
    'openai-responses': {
      items: (n) =>
        response(
          list(n / 120, () => ({
            type: 'message',
            role: 'assistant',
            content: [{ type: 'output_text', text: 'a', annotations: [] }],
          })),
        ),
      parts: (n) =>
        response([
          {
            type: 'message',
            role: 'assistant',
            content: list(n / 60, () => ({ type: 'output_text', text: 'a', annotations: [] })),
          },
        ]),
      calls: (n) =>
        response(
          list(n / 90, (i) => ({
            type: 'function_call',
            call_id: `c${i}`,
            name: 'f',
            arguments: '{}',
          })),
        ),
      'hosted calls': (n) =>
        response(
          list(n / 90, (i) => ({
            type: 'web_search_call',
            id: `ws_${i}`,
            status: 'completed',
            action: { type: 'search', query: 'a' },
          })),
        ),
      annotations: (n) =>
        response([
          {
            type: 'message',
            role: 'assistant',
            content: [
              {
                type: 'output_text',
                text: 'a',
                annotations: list(n / 80, () => ({
                  type: 'url_citation',
                  url: 'u',
                  title: 't',
                  start_index: 0,
                  end_index: 1,
                })),
              },
            ],
          },
        ]),
      reasoning: (n) =>
        response(
          list(n / 60, () => ({
            type: 'reasoning',
            summary: [{ type: 'summary_text', text: 'a' }],
          })),
        ),
    },
  };

const requestFor = (protocol: ProtocolName, tools = 0): Conversation => {
  const body =
    protocol === 'openai-chat'
      ? { messages: [user('a')], tools: list(tools, (i) => fn(`f${i}`, {})) }
      : protocol === 'openai-responses'
        ? { input: 'a', tools: [{ type: 'web_search' }] }
        : { messages: [user('a')], tools: [{ type: 'web_search_20250305', name: 'web_search' }] };
  return PROTOCOLS[protocol].decodeRequest(withModel(protocol, body));
};

describe.each(NAMES)('replies of %s', (from) => {
  const context = {
    sent: requestFor(from, 10),
    target: target(from, NO_PROFILE),
    notes: new Notes(),
  };
  for (const [what, make] of Object.entries(REPLIES[from])) {
    test(
      what,
      () =>
        expectLinear({
          name: `${from}: ${what}`,
          most: MAX,
          input: make,
          run: (body) => {
            PROTOCOLS[from].digestReply(body);
            const { wire: _, ...reply } = PROTOCOLS[from].decodeReply(body, context);
            for (const to of NAMES) {
              const client = {
                request: requestFor(to),
                requestId: 'req_1',
                provider: 'p',
                notes: new Notes(),
              };
              PROTOCOLS[to].encodeReply(reply, client);
            }
          },
        }),
      TIME,
    );
  }
});

const data = (value: Json, event = ''): string =>
  `${event === '' ? '' : `event: ${event}\n`}data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: JsonObject, more: JsonObject = {}): string =>
  data({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, ...more }],
  });
const part = (index: number, members: JsonObject): JsonObject => ({
  tool_calls: [{ index, ...members }],
});
const named = (index: number, more: JsonObject = {}): JsonObject =>
  part(index, {
    id: `c${index}`,
    type: 'function',
    function: { name: 'f', arguments: '' },
    ...more,
  });
const contentOf = (index: number, args: string): JsonObject =>
  part(index, { function: { arguments: args } });
const event = (value: JsonObject): string => data(value, String(value.type));
const messageStart = event({
  type: 'message_start',
  message: { ...messageReply([]), stop_reason: null },
});
const block = (index: number, start: JsonObject, ...deltas: JsonObject[]): string =>
  event({ type: 'content_block_start', index, content_block: start }) +
  deltas.map((delta) => event({ type: 'content_block_delta', index, delta })).join('') +
  event({ type: 'content_block_stop', index });
const messageEnd =
  event({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn' },
    usage: { output_tokens: 1 },
  }) + event({ type: 'message_stop' });
const added = (index: number, item: JsonObject): string =>
  event({ type: 'response.output_item.added', output_index: index, item });
const done = (index: number, item: JsonObject): string =>
  event({ type: 'response.output_item.done', output_index: index, item });
const created = event({ type: 'response.created', response: response([]) });
const fcall = (i: number): JsonObject => ({
  type: 'function_call',
  id: `fc_${i}`,
  call_id: `c${i}`,
  name: 'f',
  arguments: '',
});

const STREAMS: Readonly<Record<ProtocolName, Readonly<Record<string, (n: number) => string>>>> = {
  'openai-chat': {
    text: (n) =>
      chunk({ role: 'assistant' }) + list(n / 110, () => chunk({ content: 'a"b' })).join(''),
    'text and reasoning by turns': (n) =>
      list(n / 220, () => chunk({ content: 'a' }) + chunk({ reasoning_content: 'b' })).join(''),
    'calls, one after another': (n) =>
      list(n / 320, (i) => chunk(named(i)) + chunk(contentOf(i, '{}'))).join(''),
    'calls that are opened first': (n) =>
      list(n / 320, (i) => chunk(named(i))).join('') +
      list(n / 320, (i) => chunk(contentOf(i, '{}'))).join(''),
    'calls that are filled from the last on': (n) =>
      list(n / 320, (i) => chunk(named(i))).join('') +
      list(n / 320, (i) => chunk(contentOf(Math.floor(n / 320) - 1 - i, '{}'))).join(''),
    'two calls whose arguments come by turns': (n) =>
      chunk(named(0)) +
      chunk(named(1)) +
      chunk(contentOf(0, '{"a":"')) +
      chunk(contentOf(1, '{"a":"')) +
      list(n / 280, () => chunk(contentOf(0, 'xxxxxxxx')) + chunk(contentOf(1, 'yyyyyyyy'))).join(
        '',
      ),
    'a call without an end, and others behind it': (n) =>
      chunk(named(0)) +
      chunk(contentOf(0, '{"a":"'.padEnd(n / 4, 'x'))) +
      list(n / 320, (i) => chunk(named(i + 1)) + chunk(contentOf(i + 1, '{'))).join(''),
    'calls without an index': (n) =>
      list(n / 200, (i) =>
        chunk({
          tool_calls: [{ id: `c${i}`, type: 'function', function: { name: 'f', arguments: '{' } }],
        }),
      ).join(''),
    'fragments of many calls by id': (n) =>
      list(n / 400, (i) =>
        chunk({ tool_calls: [{ id: `c${i}`, function: { name: 'f', arguments: '' } }] }),
      ).join('') +
      list(n / 400, (i) =>
        chunk({ tool_calls: [{ id: `c${i}`, function: { arguments: '{' } }] }),
      ).join(''),
    'reasoning details': (n) =>
      list(n / 200, (i) =>
        chunk({
          reasoning_details: [{ type: 'reasoning.text', text: 'a', signature: 's', index: i % 2 }],
        }),
      ).join(''),
    'reasoning details of one kind': (n) =>
      list(n / 200, () =>
        chunk({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'a', index: 0 }] }),
      ).join(''),
    'sources in every chunk': (n) =>
      list(Math.sqrt(n) / 4, () =>
        data({
          id: 'c',
          choices: [{ index: 0, delta: { content: 'a' } }],
          citations: list(Math.sqrt(n) / 4, (i) => `u${i}`),
        }),
      ).join(''),
    'annotations in every chunk': (n) =>
      list(n / 200, () =>
        chunk({
          content: 'a',
          annotations: [{ type: 'url_citation', url_citation: { url: 'u', title: 't' } }],
        }),
      ).join(''),
    images: (n) =>
      list(n / 190, () =>
        chunk({ images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,A' } }] }),
      ).join(''),
    'log-probabilities': (n) =>
      list(n / 200, () =>
        chunk({ content: 'a' }, { logprobs: { content: [{ token: 'a', logprob: 0 }] } }),
      ).join(''),
    'a long id': (n) =>
      list(8, () =>
        data({ id: 'x'.repeat(n / 8), choices: [{ index: 0, delta: { content: 'a' } }] }),
      ).join(''),
  },
  'anthropic-messages': {
    text: (n) =>
      messageStart +
      block(
        0,
        { type: 'text', text: '' },
        ...list(n / 130, () => ({ type: 'text_delta', text: 'a"' })),
      ) +
      messageEnd,
    blocks: (n) =>
      messageStart +
      list(n / 400, (i) =>
        block(i, { type: 'text', text: '' }, { type: 'text_delta', text: 'a' }),
      ).join('') +
      messageEnd,
    thinking: (n) =>
      messageStart +
      list(n / 500, (i) =>
        block(
          i,
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'thinking_delta', thinking: 'a' },
          { type: 'signature_delta', signature: 's' },
        ),
      ).join('') +
      messageEnd,
    calls: (n) =>
      messageStart +
      list(n / 420, (i) =>
        block(i, use(`t${i}`), { type: 'input_json_delta', partial_json: '{}' }),
      ).join('') +
      messageEnd,
    'a call of many pieces': (n) =>
      messageStart +
      block(
        0,
        use('t'),
        ...list(n / 140, () => ({ type: 'input_json_delta', partial_json: '{' })),
      ) +
      messageEnd,
    citations: (n) =>
      messageStart +
      block(
        0,
        { type: 'text', text: '' },
        ...list(n / 200, () => ({
          type: 'citations_delta',
          citation: { type: 'web_search_result_location', url: 'u', cited_text: 'c' },
        })),
      ) +
      messageEnd,
    'hosted calls': (n) =>
      messageStart +
      list(n / 420, (i) =>
        block(
          i,
          { type: 'server_tool_use', id: `srvtoolu_${i}`, name: 'web_search', input: {} },
          { type: 'input_json_delta', partial_json: '{}' },
        ),
      ).join('') +
      messageEnd,
  },
  'openai-responses': {
    text: (n) =>
      created +
      added(0, { type: 'message', id: 'msg_1', role: 'assistant', content: [] }) +
      list(n / 190, () =>
        event({
          type: 'response.output_text.delta',
          item_id: 'msg_1',
          output_index: 0,
          content_index: 0,
          delta: 'a',
        }),
      ).join(''),
    'items that are opened first': (n) =>
      created +
      list(n / 400, (i) => added(i, fcall(i))).join('') +
      list(n / 400, (i) => done(i, { ...fcall(i), arguments: '{}' })).join(''),
    'items that end from the last on': (n) =>
      created +
      list(n / 400, (i) => added(i, fcall(i))).join('') +
      list(n / 400, (i) =>
        done(Math.floor(n / 400) - 1 - i, {
          ...fcall(Math.floor(n / 400) - 1 - i),
          arguments: '{}',
        }),
      ).join(''),
    'items without an index': (n) =>
      created +
      list(n / 400, (i) => event({ type: 'response.output_item.added', item: fcall(i) })).join('') +
      list(n / 400, (i) =>
        event({ type: 'response.function_call_arguments.delta', item_id: `fc_${i}`, delta: '{' }),
      ).join(''),
    'everything in the last event': (n) =>
      created +
      event({
        type: 'response.completed',
        response: response(list(n / 90, (i) => ({ ...fcall(i), arguments: '{}' }))),
      }),
    'reasoning parts': (n) =>
      created +
      added(0, { type: 'reasoning', id: 'rs_1', summary: [] }) +
      list(n / 200, (i) =>
        event({
          type: 'response.reasoning_summary_text.delta',
          item_id: 'rs_1',
          output_index: 0,
          summary_index: i,
          delta: 'a',
        }),
      ).join(''),
    annotations: (n) =>
      created +
      added(0, { type: 'message', id: 'msg_1', role: 'assistant', content: [] }) +
      list(n / 250, (i) =>
        event({
          type: 'response.output_text.annotation.added',
          item_id: 'msg_1',
          output_index: 0,
          content_index: 0,
          annotation_index: i,
          annotation: { type: 'url_citation', url: 'u', title: 't', start_index: 0, end_index: 1 },
        }),
      ).join(''),
    'hosted calls': (n) =>
      created +
      list(
        n / 400,
        (i) =>
          added(i, { type: 'web_search_call', id: `ws_${i}`, status: 'in_progress' }) +
          done(i, {
            type: 'web_search_call',
            id: `ws_${i}`,
            status: 'completed',
            action: { type: 'search', query: 'a' },
          }),
      ).join(''),
  },
};

const frames = (text: string): readonly SseFrame[] => {
  const parser = new SseParser();
  return [...parser.push(new TextEncoder().encode(text)), ...parser.end()];
};

describe.each(NAMES)('streams of %s', (from) => {
  const sent = requestFor(from, 10);
  const read = (all: readonly SseFrame[]): readonly StreamEvent[] => {
    const decoder = PROTOCOLS[from].decodeStream({
      sent,
      target: target(from, NO_PROFILE),
      notes: new Notes(),
    });
    const out: StreamEvent[] = [];
    for (const frame of all) for (const one of decoder.push(frame)) out.push(one);
    for (const one of decoder.end()) out.push(one);
    return out;
  };
  for (const [what, make] of Object.entries(STREAMS[from])) {
    test(
      what,
      () =>
        expectLinear({
          name: `${from}: ${what}`,
          most: MAX,
          input: (size) => frames(make(size)),
          run: (all) => {
            PROTOCOLS[from].digestStream(all);
            const machine = LINT_STREAM[from]();
            for (const frame of all) machine.push(frame);
            machine.end();
            const events = read(all);
            for (const to of NAMES) {
              const client = {
                request: requestFor(to),
                requestId: 'req_1',
                provider: 'p',
                notes: new Notes(),
              };
              const encoder = PROTOCOLS[to].encodeStream(client);
              for (const one of events) encoder.event(one);
            }
          },
        }),
      TIME,
    );
  }
});

describe('errors of vendors', () => {
  const texts: Readonly<Record<string, (n: number) => string>> = {
    ...STRINGS,
    'try again': (n) => `try again in ${'1'.repeat(n)}`,
    tokens: (n) => `prompt is too long: ${'1'.repeat(n)} tokens > ${'2'.repeat(n)}`,
    numbers: (n) => '12345 tokens '.repeat(n / 13),
    'maximum context length is': (n) => 'maximum context length is '.repeat(n / 26),
  };
  const wraps: readonly ((message: string) => Json)[] = [
    (message) => ({ type: 'error', error: { type: 'invalid_request_error', message, code: 'c' } }),
    (message) => ({ detail: [{ loc: ['body', message], msg: message }] }),
    (message) => message,
  ];
  for (const [what, make] of Object.entries(texts)) {
    test(
      what,
      () =>
        expectLinear({
          name: what,
          most: MAX,
          input: (size) => wraps.map((wrap) => JSON.stringify(wrap(make(size)))),
          run: (answers) => {
            for (const name of NAMES) {
              for (const body of answers) PROTOCOLS[name].decodeError(400, body, new Headers());
            }
          },
        }),
      TIME,
    );
  }
});
