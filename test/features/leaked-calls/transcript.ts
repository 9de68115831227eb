/** Plays a reply through the interceptor and returns what the client would read. */

import type { FinishReason, StreamEvent } from '../../../src/conversation/events.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import { ReplyBuilder } from '../../../src/conversation/reply-builder.ts';
import type { Target } from '../../../src/conversation/target.ts';
import type {
  Conversation,
  ProtocolName,
  Settings,
  Tool,
  ToolCallBlock,
} from '../../../src/conversation/types.ts';
import { leakedCalls } from '../../../src/features/leaked-calls/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';

export const targetWith = (profile: Partial<Profile> = {}): Target => ({
  provider: 'vendor',
  model: 'model-x',
  protocol: 'openai-chat',
  profile: { name: 'none', ...profile },
});

export const fn = (name: string, properties: JsonObject = {}): Tool => ({
  type: 'function',
  name,
  schema: { type: 'object', properties },
});

export const TOOLS: readonly Tool[] = [
  fn('exec_command', {
    cmd: { type: 'string' },
    timeout_ms: { type: 'integer' },
    env: { type: 'object' },
  }),
  fn('read_file', { path: { type: 'string' }, limit: { type: ['integer', 'null'] } }),
  fn('list_mailboxes'),
];

export interface Playing {
  readonly tools?: readonly Tool[];
  readonly settings?: Partial<Settings>;
  readonly profile?: Partial<Profile>;
  readonly protocol?: ProtocolName;
  readonly client?: ProtocolName;
  readonly turns?: Conversation['turns'];
}

/** A reply's parts as a decoder yields them; a list of strings is one block's deltas. */
export type Part =
  | { readonly text: readonly string[] }
  | { readonly reasoning: readonly string[] }
  | { readonly call: string; readonly args: readonly string[] };

export function eventsOf(parts: readonly Part[], finish: FinishReason = 'stop'): StreamEvent[] {
  const events: StreamEvent[] = [{ type: 'start', id: 'r', model: 'm' }];
  parts.forEach((part, index) => {
    if ('call' in part) {
      const head = { type: 'tool-call', id: `n${index}`, name: part.call } as const;
      events.push({
        type: 'block-start',
        index,
        head: { ...head, kind: 'function', by: 'client' },
      });
    } else {
      const type = 'text' in part ? 'text' : 'reasoning';
      events.push({ type: 'block-start', index, head: { type } });
    }
    const texts = 'call' in part ? part.args : 'text' in part ? part.text : part.reasoning;
    for (const text of texts) events.push({ type: 'delta', index, text });
    events.push({ type: 'block-stop', index });
  });
  return [...events, { type: 'finish', reason: finish }, { type: 'end' }];
}

export interface Played {
  readonly events: readonly StreamEvent[];
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: unknown }[];
  readonly blocks: readonly string[];
  readonly finish: string;
  readonly notes: string;
  readonly reports: readonly string[];
  /** Expects the same event objects at the output as at the input. */
  readonly same: boolean;
  readonly raw: readonly ToolCallBlock[];
}

export function play(events: readonly StreamEvent[], playing: Playing = {}): Played {
  const notes = new Notes();
  const reports: string[] = [];
  const feature = leakedCalls(({ family, outcome }) => reports.push(`${family} ${outcome}`));
  const sent: Conversation = {
    model: 'm',
    system: [],
    turns: playing.turns ?? [],
    tools: playing.tools ?? TOOLS,
    settings: { stream: true, ...playing.settings },
  };
  const context = {
    target: { ...targetWith(playing.profile), protocol: playing.protocol ?? 'openai-chat' },
    client: playing.client ?? 'openai-chat',
    notes,
    hop: 1,
  } as const;
  const interceptor = feature.intercept?.(sent, context);
  const out: StreamEvent[] = [];
  for (const event of events) {
    const passed = interceptor?.event(event) ?? event;
    if (Array.isArray(passed)) out.push(...(passed as StreamEvent[]));
    else out.push(passed as StreamEvent);
  }
  out.push(...(interceptor?.end() ?? []));
  wellFormed(out);
  const fold = new ReplyBuilder();
  for (const event of out) fold.push(event);
  const { blocks, finish } = fold.reply;
  const raw = blocks.filter((block) => block.type === 'tool-call');
  const textOf = (type: 'text' | 'reasoning') =>
    blocks.map((block) => (block.type === type ? block.text : '')).join('');
  return {
    events: out,
    text: textOf('text'),
    reasoning: textOf('reasoning'),
    calls: raw.map(({ name, input }) => ({ name, arguments: parsed(input) })),
    blocks: blocks.map(({ type }) => type),
    finish,
    notes: notes.summary(),
    reports,
    same: out.length === events.length && out.every((event, at) => event === events[at]),
    raw,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Expects one open block at a time, gapless indices from 0, and nothing after the end. */
function wellFormed(events: readonly StreamEvent[]): void {
  let open: number | undefined;
  let next = 0;
  let ended = false;
  for (const event of events) {
    if (ended) throw new Error(`${event.type} behind the end`);
    if (event.type === 'end' || event.type === 'error') ended = true;
    if (event.type === 'block-start') {
      if (open !== undefined) throw new Error('two blocks open');
      if (event.index !== next++) throw new Error(`block ${event.index}, not ${next - 1}`);
      open = event.index;
    } else if ('index' in event && event.index !== open) {
      throw new Error(`${event.type} of ${event.index} while ${open} is open`);
    }
    if (event.type === 'block-stop') open = undefined;
    if (event.type === 'finish' && open !== undefined) throw new Error('finish in a block');
  }
}

export const characters = (text: string): string[] => Array.from(text);

/** A streamed request with those tools. */
export const STREAMED: Conversation = {
  model: 'm',
  system: [],
  turns: [],
  tools: TOOLS,
  settings: { stream: true, streamUsage: true },
};
