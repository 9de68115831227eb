/** Sessions as agents and chat apps have them, request by request, and in the form of each client's protocol. */

import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';

export interface Call {
  readonly id: string;
  readonly path: string;
}

export type Said =
  | { readonly user: string }
  | { readonly assistant: string; readonly calls: readonly Call[] }
  | { readonly results: readonly { readonly call: Call; readonly text: string }[] };

export interface Asked {
  /** Seconds since the session's first request. */
  readonly at: number;
  readonly system: string;
  readonly tools: readonly string[];
  readonly said: readonly Said[];
  /** The session's usual target does not answer; another one does. */
  readonly away?: boolean;
}

/** Words that look like a text of so many tokens, the same for the same name. */
export function words(name: string, tokens: number): string {
  let text = '';
  for (let i = 0; text.length < tokens * 4; i++) text += `${name}-${i} of the text. `;
  return text.slice(0, tokens * 4);
}

const SYSTEM = words('rule', 1500);
const TOOLS = Array.from({ length: 12 }, (_, i) => `tool_${i}`);

interface Plan {
  readonly turns: number;
  readonly calls: number;
  readonly tools?: readonly string[];
  readonly system?: string;
  readonly name?: string;
  readonly from?: number;
}

/** A session that grows: each turn the model calls tools, or answers and is asked anew. */
function growing({ turns, calls, tools = TOOLS, system = SYSTEM, name = 'main', from = 0 }: Plan) {
  const asked: Asked[] = [];
  const said: Said[] = [{ user: words(`${name} task`, 300) }];
  for (let turn = 0; turn < turns; turn++) {
    asked.push({ at: from + turn * 20, system, tools, said: [...said] });
    said.push(...answered(name, turn, calls));
  }
  return { asked, said };
}

function answered(name: string, turn: number, calls: number): readonly Said[] {
  if (calls === 0) {
    const answer = { assistant: words(`${name} answer ${turn}`, 250), calls: [] };
    return [answer, { user: words(`${name} question ${turn}`, 80) }];
  }
  const made = Array.from({ length: calls }, (_, i) => ({
    id: `call_${name}_${turn}_${i}`.replaceAll(' ', '_'),
    path: `src/${name}/${turn}/${i}.ts`,
  }));
  const results = made.map((call) => ({ call, text: words(`${call.id} result`, 1200 / calls) }));
  return [{ assistant: words(`${name} thought ${turn}`, 40), calls: made }, { results }];
}

const inOrder = (asked: readonly Asked[]): readonly Asked[] =>
  asked.toSorted((one, other) => one.at - other.at);

/** The sessions by what is special in them. */
export const SESSIONS: Readonly<Record<string, readonly Asked[]>> = {
  'an agent, 30 turns': growing({ turns: 30, calls: 1 }).asked,
  'bursts of 14 calls': growing({ turns: 14, calls: 14 }).asked,
  'a chat without tools, 30 turns': growing({ turns: 30, calls: 0, tools: [] }).asked,
  'a compaction': (() => {
    const before = growing({ turns: 15, calls: 2 }).asked;
    const summary = `${words('summary', 800)} go on`;
    const after = growing({ turns: 15, calls: 2, name: summary.slice(0, 9), from: 300 });
    const lead: Said = { user: summary };
    return [
      ...before,
      ...after.asked.map((one) => ({ ...one, said: [lead, ...one.said.slice(1)] })),
    ];
  })(),
  'edits of earlier messages': (() => {
    const first = growing({ turns: 12, calls: 1 }).asked;
    const edited = first.slice(6, 9).flatMap(({ said, system, tools }, i) => {
      const start: readonly Said[] = [...said.slice(0, -1), { user: words(`edit ${i}`, 60) }];
      const asked: Asked[] = [];
      let all: readonly Said[] = start.filter(
        (one, at) => !('user' in one) || at === 0 || at === start.length - 1,
      );
      // The call before the edit has its result.
      all = withResults(all);
      for (let turn = 0; turn < 4; turn++) {
        asked.push({ at: 240 + (i * 4 + turn) * 20, system, tools, said: all });
        all = [...all, ...answered(`edit ${i}`, turn, 1)];
      }
      return asked;
    });
    return [...first, ...edited];
  })(),
  subagents: inOrder([
    ...growing({ turns: 24, calls: 1 }).asked,
    ...growing({
      turns: 10,
      calls: 2,
      name: 'explorer',
      system: words('explorer rule', 900),
      tools: TOOLS.slice(0, 5),
      from: 67,
    }).asked,
    ...growing({
      turns: 10,
      calls: 1,
      name: 'reviewer',
      system: words('reviewer rule', 900),
      tools: TOOLS.slice(3, 9),
      from: 131,
    }).asked,
  ]),
  'failover and back': growing({ turns: 24, calls: 2 }).asked.map((one, turn) => ({
    ...one,
    away: turn >= 10 && turn < 13,
  })),
  'failover in bursts, and back': growing({ turns: 14, calls: 14 }).asked.map((one, turn) => ({
    ...one,
    away: turn >= 5 && turn < 8,
  })),
};

/** Histories that the gateway repairs before it sends them, the same in each turn. */
export const BROKEN_SESSIONS: Readonly<Record<string, readonly Asked[]>> = {
  // The user stops a round, and the client sends its calls without results from then on.
  'calls without results': growing({ turns: 20, calls: 2 }).asked.map((one) => ({
    ...one,
    said: one.said.map((said, at) =>
      'results' in said && at % 8 === 2 ? { user: words(`stop ${at}`, 60) } : said,
    ),
  })),
  'results of calls that are not there': growing({ turns: 20, calls: 2 }).asked.map((one) => ({
    ...one,
    said: one.said.map((said, at) =>
      'results' in said && at % 8 === 2
        ? { results: [...said.results, { call: { id: `call_lost_${at}`, path: '' }, text: 'x' }] }
        : said,
    ),
  })),
};

function withResults(said: readonly Said[]): readonly Said[] {
  return said.flatMap((one, at) => {
    const next = said[at + 1];
    if (!('assistant' in one) || one.calls.length === 0 || (next && 'results' in next))
      return [one];
    return [one, { results: one.calls.map((call) => ({ call, text: 'stopped' })) }];
  });
}

const schemaOf = (tool: string) => ({
  type: 'object',
  properties: { path: { type: 'string', description: words(`${tool} argument`, 60) } },
  required: ['path'],
});
const describe = (tool: string) => words(`${tool} does`, 120);
const argumentsOf = ({ path }: Call) => JSON.stringify({ path });

type Body = Record<string, unknown>;

/** The request as a client of this protocol sends it. A client of Messages marks its prompt as Claude Code does. */
export const REQUESTS: Readonly<Record<ProtocolName, (asked: Asked, model: string) => Body>> = {
  'openai-chat': ({ system, tools, said }, model) => ({
    model,
    ...(tools.length > 0 && {
      tools: tools.map((name) => ({
        type: 'function',
        function: { name, description: describe(name), parameters: schemaOf(name) },
      })),
    }),
    messages: [{ role: 'system', content: system }, ...said.flatMap(chatMessages)],
  }),
  'openai-responses': ({ system, tools, said }, model) => ({
    model,
    instructions: system,
    store: false,
    ...(tools.length > 0 && {
      tools: tools.map((name) => ({
        type: 'function',
        name,
        description: describe(name),
        parameters: schemaOf(name),
      })),
    }),
    input: said.flatMap(responsesItems),
  }),
  'google-gemini': ({ system, tools, said }, model) => ({
    model,
    systemInstruction: { parts: [{ text: system }] },
    ...(tools.length > 0 && {
      tools: [
        {
          functionDeclarations: tools.map((name) => ({
            name,
            description: describe(name),
            parametersJsonSchema: schemaOf(name),
          })),
        },
      ],
    }),
    contents: said.map(geminiContent),
  }),
  'anthropic-messages': ({ system, tools, said }, model) => ({
    model,
    max_tokens: 4096,
    system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }],
    ...(tools.length > 0 && {
      tools: tools.map((name) => ({
        name,
        description: describe(name),
        input_schema: schemaOf(name),
      })),
    }),
    messages: markedMessages(said.map(messagesMessage)),
  }),
};

const toolOf = (call: Call) => `tool_${call.id.length % 3}`;

function chatMessages(one: Said): readonly Body[] {
  if ('user' in one) return [{ role: 'user', content: one.user }];
  if ('results' in one) {
    return one.results.map(({ call, text }) => ({
      role: 'tool',
      tool_call_id: call.id,
      content: text,
    }));
  }
  const calls = one.calls.map((call) => ({
    id: call.id,
    type: 'function',
    function: { name: toolOf(call), arguments: argumentsOf(call) },
  }));
  return [
    { role: 'assistant', content: one.assistant, ...(calls.length > 0 && { tool_calls: calls }) },
  ];
}

function responsesItems(one: Said): readonly Body[] {
  if ('user' in one) {
    return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: one.user }] }];
  }
  if ('results' in one) {
    return one.results.map(({ call, text }) => ({
      type: 'function_call_output',
      call_id: call.id,
      output: text,
    }));
  }
  return [
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: one.assistant, annotations: [] }],
    },
    ...one.calls.map((call) => ({
      type: 'function_call',
      call_id: call.id,
      name: toolOf(call),
      arguments: argumentsOf(call),
    })),
  ];
}

function geminiContent(one: Said): Body {
  if ('user' in one) return { role: 'user', parts: [{ text: one.user }] };
  if ('results' in one) {
    return {
      role: 'user',
      parts: one.results.map(({ call, text }) => ({
        functionResponse: { id: call.id, name: toolOf(call), response: { output: text } },
      })),
    };
  }
  const calls = one.calls.map((call) => ({
    functionCall: { id: call.id, name: toolOf(call), args: { path: call.path } },
  }));
  return { role: 'model', parts: [{ text: one.assistant }, ...calls] };
}

function messagesMessage(one: Said): { role: string; content: Body[] } {
  if ('user' in one) return { role: 'user', content: [{ type: 'text', text: one.user }] };
  if ('results' in one) {
    return {
      role: 'user',
      content: one.results.map(({ call, text }) => ({
        type: 'tool_result',
        tool_use_id: call.id,
        content: text,
      })),
    };
  }
  return {
    role: 'assistant',
    content: [
      { type: 'text', text: one.assistant },
      ...one.calls.map((call) => ({
        type: 'tool_use',
        id: call.id,
        name: toolOf(call),
        input: { path: call.path },
      })),
    ],
  };
}

/** Marks on the last block of the last two messages of the user. */
function markedMessages(messages: readonly { role: string; content: Body[] }[]) {
  const users = messages.flatMap(({ role }, at) => (role === 'user' ? [at] : [])).slice(-2);
  return messages.map((message, at) =>
    users.includes(at)
      ? {
          ...message,
          content: message.content.map((block, i) =>
            i === message.content.length - 1
              ? { ...block, cache_control: { type: 'ephemeral' } }
              : block,
          ),
        }
      : message,
  );
}
