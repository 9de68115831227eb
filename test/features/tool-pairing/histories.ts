/** Valid agent sessions as bodies of Chat, Responses and Messages, growing turn by turn; seeded. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { seeded } from '../../support/chunkings.ts';

export type Mutable = Record<string, Json>;

/** Seeded random choices; the same seed gives the same session. */
export class Random {
  /** In [0, 1). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seeded(seed);
  }

  /** An integer below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(p: number): boolean {
    return this.next() < p;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}

interface Step {
  readonly thinking?: string;
  readonly text?: string;
  readonly calls: readonly {
    id: string;
    key: string;
    name: string;
    result: string;
    error: boolean;
  }[];
}

/** A round: the user's message and the model's steps until its last text. */
export interface Round {
  readonly user: string;
  readonly steps: readonly Step[];
}

const NAMES = ['Read', 'Bash', 'exec_command', 'mcp__files__list'];

/** A signature that these tests treat as the vendor's own. */
export function genuineSignature(random: Random): string {
  const bytes = Uint8Array.from({ length: 72 }, () => random.below(256));
  return `EuYB${Buffer.from(bytes).toString('base64')}`;
}

/** `T…` marks text, `R…` results, `H…` thinking, so that a test can search for what must not get lost. */
export function session(seed: number, rounds: number): readonly Round[] {
  const random = new Random(seed);
  let serial = 0;
  const mark = (letter: string) => `${letter}${++serial}.`;
  const thinks = random.chance(0.5);
  return Array.from({ length: rounds }, () => {
    const steps: Step[] = Array.from({ length: random.below(4) }, () => ({
      ...(thinks ? { thinking: mark('H') } : {}),
      ...(random.chance(0.5) ? { text: `${mark('T')} let me look` } : {}),
      calls: Array.from({ length: 1 + random.below(3) }, () => {
        const key = mark('K');
        return {
          id: `toolu_${key.slice(1, -1)}x${seed % 997}`,
          key,
          name: random.pick(NAMES),
          result: random.chance(0.1) ? '' : `${mark('R')} done`,
          error: random.chance(0.1),
        };
      }),
    }));
    return {
      user: `${mark('T')} please`,
      steps: [
        ...steps,
        { ...(thinks ? { thinking: mark('H') } : {}), text: `${mark('T')} there`, calls: [] },
      ],
    };
  });
}

/** Every request of the session, oldest first; each ends at the model's turn and shares no objects with the others. */
export function requests(
  rounds: readonly Round[],
  write: (turns: readonly Mutable[][]) => JsonObject,
  voice: Voice,
): readonly JsonObject[] {
  const out: JsonObject[] = [];
  const turns: Mutable[][] = [];
  for (const round of rounds) {
    turns.push(voice.user(round.user));
    out.push(write(structuredClone(turns)));
    for (const step of round.steps) {
      turns.push(voice.assistant(step));
      if (step.calls.length === 0) continue;
      turns.push(voice.results(step));
      out.push(write(structuredClone(turns)));
    }
  }
  return out;
}

/** The shapes of one protocol. */
export interface Voice {
  user(text: string): Mutable[];
  assistant(step: Step): Mutable[];
  results(step: Step): Mutable[];
}

const TOOLS = NAMES.map((name) => ({ name, input_schema: { type: 'object' } }));

export function messagesVoice(seed: number): Voice {
  const random = new Random(seed ^ 0x5eed);
  return {
    user: (text) => [
      { role: 'user', content: random.chance(0.5) ? text : [{ type: 'text', text }] },
    ],
    assistant: ({ thinking, text, calls }) => [
      {
        role: 'assistant',
        content: [
          ...(thinking === undefined
            ? []
            : [{ type: 'thinking', thinking, signature: genuineSignature(random) }]),
          ...(text === undefined ? [] : [{ type: 'text', text }]),
          ...calls.map(({ id, key, name }) => ({ type: 'tool_use', id, name, input: { key } })),
        ],
      },
    ],
    results: ({ calls }) => [
      {
        role: 'user',
        content: calls.map(({ id, result, error }) => ({
          type: 'tool_result',
          tool_use_id: id,
          content: random.chance(0.7) || result === '' ? result : [{ type: 'text', text: result }],
          ...(error && result !== '' ? { is_error: true } : {}),
        })),
      },
    ],
  };
}

export const messagesBody = (turns: readonly Mutable[][]): JsonObject => ({
  model: 'claude-sonnet-4-5',
  max_tokens: 8192,
  tools: TOOLS,
  ...(JSON.stringify(turns).includes('"thinking"')
    ? { thinking: { type: 'enabled', budget_tokens: 2048 } }
    : {}),
  messages: turns.flat(),
});

export const chatVoice: Voice = {
  user: (text) => [{ role: 'user', content: text }],
  assistant: ({ text, calls }) => [
    {
      role: 'assistant',
      content: text ?? null,
      ...(calls.length === 0
        ? {}
        : {
            tool_calls: calls.map(({ id, key, name }) => ({
              id,
              type: 'function',
              function: { name, arguments: JSON.stringify({ key }) },
            })),
          }),
    },
  ],
  results: ({ calls }) =>
    calls.map(({ id, result }) => ({ role: 'tool', tool_call_id: id, content: result })),
};

export const chatBody = (turns: readonly Mutable[][]): JsonObject => ({
  model: 'gpt-5.1',
  messages: turns.flat(),
});

export const responsesVoice: Voice = {
  user: (text) => [{ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }],
  assistant: ({ thinking, text, calls }): Mutable[] => [
    ...(thinking === undefined
      ? []
      : [
          {
            type: 'reasoning',
            id: `rs_${thinking.slice(1, -1)}`,
            summary: [],
            encrypted_content: 'gAAAAAsealed',
          },
        ]),
    ...(text === undefined
      ? []
      : [
          {
            type: 'message',
            role: 'assistant',
            id: `msg_${text.slice(1, text.indexOf('.'))}`,
            content: [{ type: 'output_text', text, annotations: [] }],
          },
        ]),
    ...calls.map(({ id, key, name }) => ({
      type: 'function_call',
      id: `fc_${key.slice(1, -1)}`,
      call_id: id,
      name,
      arguments: JSON.stringify({ key }),
    })),
  ],
  results: ({ calls }) =>
    calls.map(({ id, result }) => ({ type: 'function_call_output', call_id: id, output: result })),
};

export const responsesBody = (turns: readonly Mutable[][]): JsonObject => ({
  model: 'gpt-5.1',
  store: false,
  input: turns.flat(),
});
