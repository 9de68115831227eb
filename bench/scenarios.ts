/** The load scenarios and the requests that clients send in them. */

import type { LoadPlan } from './load-plan.ts';
import type { Dialect } from './replies.ts';

export type ScenarioName = 'J1' | 'J50' | 'T8' | 'S50' | 'B1' | 'B50' | 'P500';

export interface Scenario {
  readonly name: ScenarioName;
  readonly about: string;
  /** What CPU time is divided by. */
  readonly unit: 'request' | 'stream' | 'event';
  /** The mock's reply. */
  readonly model: string;
  readonly connections: number;
  readonly durationMs: number;
  readonly maxRequests: number;
  readonly spreadMs: number;
  readonly events: number;
  readonly stamped: boolean;
  /** Bytes of a message in front of the question. */
  readonly padding?: number;
}

// What is held against the relay to a few hundredths: one slice more or less is off by 15 of them.
const RATIO_MS = 2400;
const CLOSED_LOOP = { durationMs: 1000, maxRequests: 1_000_000, spreadMs: 0, stamped: false };

export const SCENARIOS: readonly Scenario[] = [
  {
    ...CLOSED_LOOP,
    name: 'J1',
    about: '1 KB JSON answers, 1 connection',
    unit: 'request',
    model: 'json-1k',
    connections: 1,
    events: 0,
  },
  {
    ...CLOSED_LOOP,
    durationMs: RATIO_MS,
    name: 'J50',
    about: '1 KB JSON answers, 50 connections',
    unit: 'request',
    model: 'json-1k',
    connections: 50,
    events: 0,
  },
  {
    ...CLOSED_LOOP,
    name: 'T8',
    about: 'prompts of 100,000 tokens (400 KB), 1 KB JSON answers, 8 connections',
    unit: 'request',
    model: 'json-1k',
    connections: 8,
    events: 0,
    padding: 400_000,
  },
  {
    ...CLOSED_LOOP,
    durationMs: RATIO_MS,
    name: 'S50',
    about: 'streams of 100 events in one burst, 50 connections',
    unit: 'stream',
    model: 'burst-100',
    connections: 50,
    events: 100,
  },
  {
    ...CLOSED_LOOP,
    name: 'B1',
    about: 'streams of 2000 events in one burst, 1 connection',
    unit: 'event',
    model: 'burst-2000',
    connections: 1,
    events: 2000,
  },
  {
    ...CLOSED_LOOP,
    name: 'B50',
    about: 'streams of 2000 events in one burst, 50 connections',
    unit: 'event',
    model: 'burst-2000',
    connections: 50,
    events: 2000,
  },
  {
    name: 'P500',
    about: '500 streams at once, 100 events each, one every 20 ms (25,000 events/s offered)',
    unit: 'event',
    model: 'paced-100x20ms',
    connections: 500,
    durationMs: 8000,
    maxRequests: 500,
    spreadMs: 200,
    events: 100,
    stamped: true,
  },
];

/** The same for so many milliseconds; a wave of paced streams takes as long as it takes. */
export function lasting(scenario: Scenario, ms: number): Scenario {
  return scenario.stamped ? scenario : { ...scenario, durationMs: Math.round(ms) };
}

/** A short run of the same kind. */
export function leadIn(scenario: Scenario): Scenario {
  return scenario.stamped
    ? { ...scenario, model: 'paced-20x20ms', events: 20 }
    : lasting(scenario, 150);
}

const SYSTEM = 'You are a careful assistant. '.repeat(6).trim();
const QUESTION = 'Please explain how a hash table deals with collisions. '.repeat(5).trim();

const PATH_PARAMETERS = {
  type: 'object',
  properties: { path: { type: 'string', description: 'Absolute path.' } },
  required: ['path'],
};
const TOOLS = [
  { name: 'read_file', description: 'Reads a file.', parameters: PATH_PARAMETERS },
  { name: 'list_folder', description: 'Lists a folder.', parameters: PATH_PARAMETERS },
];

function declared(dialect: Dialect, tool: (typeof TOOLS)[number]): object {
  if (dialect === 'chat') return { type: 'function', function: tool };
  if (dialect === 'responses') return { type: 'function', ...tool };
  if (dialect === 'gemini') return { functionDeclarations: [tool] };
  const { name, description, parameters } = tool;
  return { name, description, input_schema: parameters };
}

/** A request of about 600 bytes; `padding` adds a user message of that many bytes in front. */
export function requestBody(
  dialect: Dialect,
  model: string,
  stream: boolean,
  extras: { readonly padding?: number; readonly tools?: boolean } = {},
): string {
  const padding = extras.padding ?? 0;
  const filler = 'lorem ipsum dolor sit amet, consectetur; '.repeat(Math.ceil(padding / 41));
  const turn = (role: 'user' | 'assistant', text: string) =>
    dialect === 'gemini'
      ? { role: role === 'user' ? 'user' : 'model', parts: [{ text }] }
      : { role, content: text };
  const before = padding > 0 ? [turn('user', filler), turn('assistant', 'Noted.')] : [];
  const talk = [...before, turn('user', QUESTION)];
  const tools =
    extras.tools === true ? { tools: TOOLS.map((tool) => declared(dialect, tool)) } : {};
  if (dialect === 'gemini') {
    const systemInstruction = { parts: [{ text: SYSTEM }] };
    const generationConfig = { temperature: 0.7 };
    return JSON.stringify({ contents: talk, systemInstruction, generationConfig, ...tools });
  }
  const rest =
    dialect === 'chat'
      ? {
          messages: [{ role: 'system', content: SYSTEM }, ...talk],
          temperature: 0.7,
          ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
        }
      : dialect === 'messages'
        ? { max_tokens: 4096, system: SYSTEM, messages: talk, ...(stream ? { stream: true } : {}) }
        : { instructions: SYSTEM, input: talk, ...(stream ? { stream: true } : {}) };
  return JSON.stringify({ model, ...rest, ...tools });
}

const PATHS: Readonly<Record<Exclude<Dialect, 'gemini'>, string>> = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
};

/** Where a request of this dialect goes below a gateway's root. */
export function pathOf(dialect: Dialect, model: string, stream: boolean): string {
  if (dialect !== 'gemini') return PATHS[dialect];
  const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  return `/v1beta/models/${model}:${method}`;
}

/** Where a target listens and what it must be sent. */
export interface Entrance {
  readonly port: number;
  readonly dialect: Dialect;
  readonly headers: Readonly<Record<string, string>>;
  /** The client declares two tools, so that leaked tool calls must be looked for. */
  readonly tools?: boolean;
  /** The model as this target wants to hear it. */
  model(name: string): string;
}

/** The plan for one scenario against one target. */
export function planFor(scenario: Scenario, entrance: Entrance): LoadPlan {
  const { dialect, port, headers } = entrance;
  const model = entrance.model(scenario.model);
  const stream = scenario.events > 0;
  return {
    port,
    path: pathOf(dialect, model, stream),
    headers,
    body: requestBody(dialect, model, stream, {
      tools: entrance.tools ?? false,
      ...(scenario.padding !== undefined && { padding: scenario.padding }),
    }),
    connections: scenario.connections,
    durationMs: scenario.durationMs,
    maxRequests: scenario.maxRequests,
    graceMs: 1500,
    spreadMs: scenario.spreadMs,
    events: scenario.events,
    stamped: scenario.stamped,
  };
}
