/** The tools of a chat: recall from the memory, read the others' messages, and see whether one is mentioned. */

import type { Payer } from '../../conversation/account/payer.ts';
import { asGatewayError } from '../../conversation/errors.ts';
import type { Memory, RecalledEvent } from '../../conversation/memory.ts';
import type { Json, JsonObject } from '../../lib/json/json.ts';
import type { ChatRound, MemorySettings } from './extension.ts';
import { limitText, type Texts } from './texts.ts';

export const RECALL = 'recall_memory';
export const MESSAGES = 'get_other_members_messages';
export const MENTION = 'is_mentioned';

/** A tool in the form that the server-tools feature runs. */
export interface ConversationTool {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
  readonly limits: { readonly timeoutMs: number };
  readonly inject: 'force';
  readonly pinned: boolean;
  run(
    args: JsonObject,
    context: { readonly signal: AbortSignal; readonly payer?: Payer | undefined },
  ): Promise<ConversationToolOutcome>;
}

export interface ConversationToolOutcome {
  readonly ok: boolean;
  readonly payload: Json;
  readonly text: string;
  readonly code?: string;
  /** Fields for the log line: lengths and counts, never content. */
  readonly log?: JsonObject;
}

export interface ConversationToolsOptions {
  readonly round: ChatRound | undefined;
  readonly memorySettings: MemorySettings | undefined;
  readonly memory: Memory | undefined;
  readonly texts: Texts;
  /** Gets each query word for word, for logs that may contain content. */
  readonly onQuery: (query: string, events: number) => void;
}

const TIMEOUT_MS = 10_000;
const NO_ARGUMENTS: JsonObject = { type: 'object', properties: {}, additionalProperties: false };

/** The tools of this conversation, always in the same order. */
export function conversationTools(options: ConversationToolsOptions): readonly ConversationTool[] {
  const { round, memorySettings, memory, texts } = options;
  const group = round?.mode === 'group';
  const recalls =
    memorySettings !== undefined && memorySettings.recall !== 'off' && memory !== undefined;
  const forced = memorySettings?.recall === 'always';
  const textOutcome = (text: string): ConversationToolOutcome => ({
    ok: true,
    payload: text,
    text,
  });
  const common = { limits: { timeoutMs: TIMEOUT_MS }, inject: 'force', pinned: forced } as const;
  return [
    ...(recalls ? [{ ...common, ...recallTool(memory, memorySettings, options) }] : []),
    ...(group
      ? [
          {
            ...common,
            name: MESSAGES,
            description: texts.messages_description,
            schema: NO_ARGUMENTS,
            run: async () =>
              textOutcome(round.others.trim() === '' ? texts.no_messages : round.others),
          },
          {
            ...common,
            name: MENTION,
            description: texts.mention_description,
            schema: NO_ARGUMENTS,
            run: async () =>
              textOutcome(isMentioned(round) ? texts.mentioned : texts.not_mentioned),
          },
        ]
      : []),
  ];
}

const isMentioned = ({ self, mentions }: ChatRound): boolean =>
  self !== undefined && mentions.includes(self.id);

function recallTool(
  memory: Memory,
  { space, limit, maxRecalls }: MemorySettings,
  { round, texts, onQuery }: ConversationToolsOptions,
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
    async run({ query }, { signal, payer }) {
      if (typeof query !== 'string' || query.trim() === '') {
        return recallFailed("'query' must be a string that is not empty.", 'invalid_tool_input');
      }
      let found: readonly RecalledEvent[];
      try {
        const speaker = round?.self?.name;
        found = await memory.recall(space, {
          query,
          limit,
          signal,
          payer,
          ...(speaker !== undefined && { speaker }),
        });
      } catch (thrown) {
        return recallFailed(asGatewayError(thrown).message, 'unavailable');
      }
      onQuery(query, found.length);
      const payload = { events: found.map(eventJson) };
      const log = { query_chars: query.length, events: found.length };
      return { ok: true, payload, text: JSON.stringify(payload), log };
    },
  };
}

/** The outcome of a failed recall: the model continues with what it knows. */
function recallFailed(message: string, code: string): ConversationToolOutcome {
  const payload = { ok: false, tool: RECALL, message, events: [] };
  return { ok: false, payload, text: JSON.stringify(payload), code };
}

/**
 * An event for models and apps. It has no score, which changes with the time: a changed text costs the
 * vendor's prompt cache.
 */
const eventJson = ({ id, time, text, source, tags }: RecalledEvent): JsonObject => ({
  id,
  time: new Date(time).toISOString(),
  text,
  ...(source === undefined ? {} : { source }),
  ...(tags.length === 0 ? {} : { tags }),
});
