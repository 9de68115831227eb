/** The tools of a chat: recall from the memory, read the others' messages, and see whether one is mentioned. */

import type { Payer } from '../../conversation/account/payer.ts';
import { asGatewayError } from '../../conversation/errors.ts';
import type { Memory, RecalledEvent, RecallQuery } from '../../conversation/memory.ts';
import type { Json, JsonObject } from '../../lib/json/json.ts';
import type { ChatRound, MemorySettings } from './extension.ts';
import { limitText, type Texts } from './texts.ts';

export const RECALL = 'recall_memory';
export const FORGET = 'forget_memory';
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
/** Events that one call forgets. */
const MAX_FORGOTTEN = 100;
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
    ...(recalls && memorySettings.forget
      ? [{ ...common, ...forgetTool(memory, memorySettings, texts) }]
      : []),
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
  { space, limit, maxRecalls, maxTokens, timeZone }: MemorySettings,
  { round, texts, onQuery }: ConversationToolsOptions,
): Pick<ConversationTool, 'name' | 'description' | 'schema' | 'run'> {
  const limited = maxRecalls === undefined ? '' : ` ${limitText(texts, maxRecalls)}`;
  return {
    name: RECALL,
    description: texts.recall_description + limited,
    schema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: texts.query_description },
        since: { type: 'string', description: texts.since_description },
        until: { type: 'string', description: texts.until_description },
      },
      required: ['query'],
      additionalProperties: false,
    },
    async run({ query, since, until }, { signal, payer }) {
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
          ...(maxTokens !== undefined && { maxTokens }),
          ...(timeZone !== undefined && { timeZone }),
          ...timeOf('since', since),
          ...timeOf('until', until),
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

/** A time that cannot be read restricts nothing. */
function timeOf(name: 'since' | 'until', given: Json | undefined): Partial<RecallQuery> {
  const time = typeof given === 'string' ? Date.parse(given) : Number.NaN;
  return Number.isNaN(time) ? {} : { [name]: time };
}

function forgetTool(
  memory: Memory,
  { space }: MemorySettings,
  texts: Texts,
): Pick<ConversationTool, 'name' | 'description' | 'schema' | 'run'> {
  return {
    name: FORGET,
    description: texts.forget_description,
    schema: {
      type: 'object',
      properties: {
        ids: { type: 'array', items: { type: 'string' }, description: texts.ids_description },
      },
      required: ['ids'],
      additionalProperties: false,
    },
    async run({ ids }) {
      const given = Array.isArray(ids) ? ids.filter((id) => typeof id === 'string') : [];
      try {
        const payload = { forgotten: await memory.forget(space, given.slice(0, MAX_FORGOTTEN)) };
        return { ok: true, payload, text: JSON.stringify(payload), log: payload };
      } catch (thrown) {
        return toolFailed(FORGET, asGatewayError(thrown).message, 'unavailable');
      }
    },
  };
}

/** The outcome of a failed call: the model continues with what it knows. */
function toolFailed(
  tool: string,
  message: string,
  code: string,
  more: JsonObject = {},
): ConversationToolOutcome {
  const payload = { ok: false, tool, message, ...more };
  return { ok: false, payload, text: JSON.stringify(payload), code };
}

const recallFailed = (message: string, code: string) =>
  toolFailed(RECALL, message, code, { events: [] });

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
