/** Two messages of one Responses answer are two paragraphs for clients whose answer is one text. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../src/codecs/anthropic-messages/index.ts';
import type { ClientContext, Codec } from '../../src/codecs/codec.ts';
import { googleGemini } from '../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../src/codecs/openai-responses/index.ts';
import type { StreamEvent } from '../../src/conversation/events.ts';
import { Notes } from '../../src/conversation/notes.ts';
import { ReplyBuilder, replyEvents } from '../../src/conversation/reply-builder.ts';
import type { Target } from '../../src/conversation/target.ts';
import type { Tool } from '../../src/conversation/types.ts';
import type { Interceptor } from '../../src/features/feature.ts';
import { leakedCalls } from '../../src/features/leaked-calls/index.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';

const TARGET: Target = {
  provider: 'p',
  model: 'm',
  protocol: 'openai-responses',
  profile: { name: 'none' },
};
const TOOLS: readonly Tool[] = [
  { type: 'function', name: 'run', schema: { type: 'object' } },
  { type: 'hosted', name: 'web_search' } as Tool,
];
const SENT = {
  ...openaiResponses.decodeRequest({ model: 'm', input: 'hi', stream: true }),
  tools: TOOLS,
};

const cites = (from: number, to: number) => ({
  type: 'url_citation',
  url: 'https://a.test/',
  title: 'A',
  start_index: from,
  end_index: to,
});
const message = (id: string, texts: readonly string[], annotations: readonly object[] = []) => ({
  type: 'message',
  id,
  status: 'completed',
  role: 'assistant',
  content: texts.map((text) => ({ type: 'output_text', text, annotations })),
});
const reasoning = { type: 'reasoning', id: 'rs', summary: [{ type: 'summary_text', text: 'So.' }] };

const response = (output: readonly object[]) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  status: 'completed',
  output,
});

/** The stream of an answer; texts come in pieces. */
function streamOf(output: readonly object[]): readonly JsonObject[] {
  const events: object[] = [{ type: 'response.created', response: response([]) }];
  output.forEach((given, output_index) => {
    const item = given as JsonObject & { content?: readonly { text: string }[] };
    events.push({
      type: 'response.output_item.added',
      output_index,
      item: { ...item, content: [] },
    });
    item.content?.forEach(({ text }, content_index) => {
      const at = { output_index, content_index };
      const part = { type: 'output_text', text: '', annotations: [] };
      events.push({ type: 'response.content_part.added', ...at, part });
      for (const delta of text.match(/.{1,3}/gs) ?? []) {
        events.push({ type: 'response.output_text.delta', ...at, delta });
      }
      events.push({
        type: 'response.content_part.done',
        ...at,
        part: item.content?.[content_index],
      });
    });
    events.push({ type: 'response.output_item.done', output_index, item });
  });
  events.push({ type: 'response.completed', response: response(output) });
  return events as readonly JsonObject[];
}

const context = { sent: SENT, target: TARGET, notes: new Notes() };
const asked: ClientContext = { request: SENT, notes: new Notes(), requestId: 'r' } as ClientContext;

/** The events of the answer, decoded from a stream or whole. */
function decoded(output: readonly object[], streamed: boolean): readonly StreamEvent[] {
  if (!streamed) {
    return [...replyEvents(openaiResponses.decodeReply(response(output) as JsonObject, context))];
  }
  const decoder = openaiResponses.decodeStream(context);
  const frames = streamOf(output).map((data) => ({
    event: String(data.type),
    data: JSON.stringify(data),
  }));
  return [...frames.flatMap((frame) => decoder.push(frame as never)), ...decoder.end()];
}

function searched(events: readonly StreamEvent[]): readonly StreamEvent[] {
  const feature = leakedCalls(() => undefined);
  const armed = feature.intercept?.(SENT, { target: TARGET, notes: new Notes() } as never);
  const interceptor = armed as Interceptor;
  const out = events.flatMap((event) => interceptor.event(event) as StreamEvent);
  return [...out, ...interceptor.end()];
}

interface Seen {
  readonly text: string;
  readonly cited: readonly string[];
}

const CLIENTS: readonly (readonly [string, Codec])[] = [
  ['Chat', openaiChat],
  ['Gemini', googleGemini],
];

function textOf(value: JsonObject): string {
  const { choices, candidates } = value as {
    choices?: readonly { message?: { content: string }; delta?: { content?: string } }[];
    candidates?: readonly { content?: { parts?: readonly { text?: string; thought?: true }[] } }[];
  };
  const chat = choices?.[0]?.message?.content ?? choices?.[0]?.delta?.content ?? '';
  const parts = candidates?.[0]?.content?.parts ?? [];
  return chat + parts.map(({ text, thought }) => (thought ? '' : (text ?? ''))).join('');
}

/** What the cited ranges hold, as the client cuts them out of the text. */
function citedOf(values: readonly JsonObject[], text: string): readonly string[] {
  const json = JSON.stringify(values);
  const chat = [...json.matchAll(/"start_index":(\d+),"end_index":(\d+)/g)];
  const other = [...json.matchAll(/"end_index":(\d+),"start_index":(\d+)/g)];
  const gemini = [...json.matchAll(/"segment":(\{[^}]*\})/g)].map(([, segment]) => {
    const { startIndex = 0, endIndex } = JSON.parse(segment!);
    return Buffer.from(text).subarray(startIndex, endIndex).toString();
  });
  return [
    ...chat.map(([, from, to]) => text.slice(Number(from), Number(to))),
    ...other.map(([, to, from]) => text.slice(Number(from), Number(to))),
    ...gemini,
  ];
}

function seen(codec: Codec, events: readonly StreamEvent[], streamed: boolean): Seen {
  if (!streamed) {
    const fold = new ReplyBuilder();
    for (const event of events) fold.push(event);
    const body = codec.encodeReply(fold.reply, asked) as JsonObject;
    const text = textOf(body);
    return { text, cited: citedOf([body], text) };
  }
  const encoder = codec.encodeStream(asked);
  const chunks = events
    .map((event) => encoder.event(event))
    .join('')
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as JsonObject);
  const text = chunks.map(textOf).join('');
  return { text, cited: citedOf(chunks, text) };
}

const ANSWERS: readonly (readonly [string, readonly object[], string, readonly string[]])[] = [
  [
    'a comment and the answer',
    [message('m1', ['I will look.']), message('m2', ['Done.'])],
    'I will look.\n\nDone.',
    [],
  ],
  [
    'something else between them',
    [message('m1', ['I will look.']), reasoning, message('m2', ['Done.']), message('m3', ['Bye.'])],
    'I will look.\n\nDone.\n\nBye.',
    [],
  ],
  [
    'parts of one message stay one text',
    [message('m1', ['I will ', 'look.']), message('m2', ['Do', 'ne.'])],
    'I will look.\n\nDone.',
    [],
  ],
  ['an empty first message', [message('m1', ['']), message('m2', ['Done.'])], 'Done.', []],
  ['an empty last message', [message('m1', ['Done.']), message('m2', [''])], 'Done.', []],
  [
    'sources of both',
    [message('m1', ['I will look.'], [cites(2, 6)]), message('m2', ['Done.'], [cites(0, 4)])],
    'I will look.\n\nDone.',
    ['will', 'Done'],
  ],
];

for (const [client, codec] of CLIENTS) {
  describe(client, () => {
    for (const [name, output, text, cited] of ANSWERS) {
      test(name, () => {
        for (const from of [true, false]) {
          const events = decoded(output, from);
          for (const passed of [events, searched(events)]) {
            for (const to of [true, false]) {
              expect([from, to, seen(codec, passed, to)]).toEqual([from, to, { text, cited }]);
            }
          }
        }
      });
    }
  });
}

test('thoughts in the second message end up between two texts of one paragraph', () => {
  const output = [message('m1', ['One.']), message('m2', ['<think>So.</think>Two.'])];
  for (const from of [true, false]) {
    const { text } = seen(openaiChat, searched(decoded(output, from)), true);
    expect(text.replace('<think>So.</think>', '')).toBe('One.\n\nTwo.');
  }
});

test('results of tools that another vendor ran are paragraphs of the answer that a Chat vendor gets', () => {
  const search = (id: string, title: string) => [
    { type: 'server_tool_use', id, name: 'web_search', input: { query: 'x' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: id,
      content: [
        { type: 'web_search_result', url: 'https://a.test', title, encrypted_content: 'E' },
      ],
    },
  ];
  const asked = (content: readonly object[]) =>
    openaiChat.encodeRequest(
      anthropicMessages.decodeRequest({
        model: 'm',
        max_tokens: 9,
        messages: [
          { role: 'user', content: 'go' },
          { role: 'assistant', content: content as JsonObject[] },
          { role: 'user', content: 'more' },
        ],
      }),
      { ...TARGET, protocol: 'openai-chat' },
      new Notes(),
    ) as unknown as { messages: readonly { content: string }[] };
  const text = (value: string) => ({ type: 'text', text: value });
  const [one, two] = [search('srvtoolu_1', 'A'), search('srvtoolu_2', 'B')];
  for (const [content, wanted] of [
    [[...one, text('Found.')], 'A\nhttps://a.test\n\nFound.'],
    [
      [text('I look.'), ...one, ...two, text('Fo'), text('und.')],
      'I look.\n\nA\nhttps://a.test\n\nB\nhttps://a.test\n\nFound.',
    ],
    [[text('I look.'), ...one], 'I look.\n\nA\nhttps://a.test'],
  ] as const) {
    expect(asked(content).messages[1]!.content).toBe(wanted);
  }
});
