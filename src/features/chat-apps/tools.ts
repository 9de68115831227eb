/** The tools of a conversation: recalling, what the others said, and whether one was mentioned. */

import { asGatewayError } from '../../conversation/errors.ts';
import type { Memory, RecalledEvent } from '../../conversation/memory.ts';
import type { Json, JsonObject } from '../../lib/json/json.ts';
import type { MemoryWish, Talk } from './extension.ts';
import { limitText, type Texts } from './texts.ts';

export const RECALL = 'recall_memory';
export const MESSAGES = 'get_other_members_messages';
export const MENTION = 'is_mentioned';

/** A tool as the server-tool loop runs it. */
export interface ConversationTool {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
  readonly limits: { readonly timeoutMs: number };
  readonly inject: 'force';
  readonly pinned: boolean;
  run(args: JsonObject, context: { readonly signal: AbortSignal }): Promise<Outcome>;
}

export interface Outcome {
  readonly ok: boolean;
  readonly payload: Json;
  readonly text: string;
  readonly code?: string;
  /** Fields for the log line: lengths and counts, never words. */
  readonly log?: JsonObject;
}

export interface ConversationToolsOptions {
  readonly talk: Talk | undefined;
  readonly wish: MemoryWish | undefined;
  readonly memory: Memory | undefined;
  readonly texts: Texts;
  /** Told what was asked for, word for word: for logs that are meant to hold content. */
  readonly onQuery: (query: string, events: number) => void;
}

const TIMEOUT_MS = 10_000;
const NO_ARGUMENTS: JsonObject = { type: 'object', properties: {}, additionalProperties: false };

/** Those that this conversation has, in the order in which they are always declared. */
export function conversationTools(options: ConversationToolsOptions): readonly ConversationTool[] {
  const { talk, wish, memory, texts } = options;
  const group = talk?.mode === 'group';
  const recalls = wish !== undefined && wish.recall !== 'off' && memory !== undefined;
  const forced = wish?.recall === 'always';
  const said = (text: string): Outcome => ({ ok: true, payload: text, text });
  const common = { limits: { timeoutMs: TIMEOUT_MS }, inject: 'force', pinned: forced } as const;
  return [
    ...(recalls ? [{ ...common, ...recallTool(memory, wish, options) }] : []),
    ...(group
      ? [
          {
            ...common,
            name: MESSAGES,
            description: texts.messages_description,
            schema: NO_ARGUMENTS,
            run: async () => said(talk.others.trim() === '' ? texts.no_messages : talk.others),
          },
          {
            ...common,
            name: MENTION,
            description: texts.mention_description,
            schema: NO_ARGUMENTS,
            run: async () => said(isMentioned(talk) ? texts.mentioned : texts.not_mentioned),
          },
        ]
      : []),
  ];
}

const isMentioned = ({ self, mentions }: Talk): boolean =>
  self !== undefined && mentions.includes(self.id);

function recallTool(
  memory: Memory,
  { space, limit, maxRecalls }: MemoryWish,
  { talk, texts, onQuery }: ConversationToolsOptions,
): Pick<ConversationTool, 'name' | 'description' | 'schema' | 'run'> {
  const limited = maxRecalls === undefined ? '' : ` ${limitText(texts, maxRecalls)}`;
  return {
    name: RECALL,
    description: texts.recall_description + limited,
    schema: {
      type: 'object',
      properties: { query: { type: 'string', description: texts.query_description } },
      required: ['query'],
      additionalProperties: false,
    },
    async run({ query }, { signal }) {
      if (typeof query !== 'string' || query.trim() === '') {
        return forgetful("'query' must be a string that is not empty.", 'invalid_tool_input');
      }
      let found: readonly RecalledEvent[];
      try {
        const speaker = talk?.self?.name;
        found = await memory.recall(space, {
          query,
          limit,
          signal,
          ...(speaker !== undefined && { speaker }),
        });
      } catch (thrown) {
        return forgetful(asGatewayError(thrown).message, 'unavailable');
      }
      onQuery(query, found.length);
      const payload = { events: found.map(told) };
      const log = { query_chars: query.length, events: found.length };
      return { ok: true, payload, text: JSON.stringify(payload), log };
    },
  };
}

/** A recall that failed: the model goes on with what it knows. */
function forgetful(message: string, code: string): Outcome {
  const payload = { ok: false, tool: RECALL, message, events: [] };
  return { ok: false, payload, text: JSON.stringify(payload), code };
}

/**
 * An event as models and apps read it. The score stays here: it changes with the clock, and a text
 * that changes for nothing costs the vendor's prompt cache.
 */
const told = ({ id, time, text, source, tags }: RecalledEvent): JsonObject => ({
  id,
  time: new Date(time).toISOString(),
  text,
  ...(source === undefined ? {} : { source }),
  ...(tags.length === 0 ? {} : { tags }),
});
