/** A chat app's conversation: what it asks for beside its request, as tools, forced calls and passes. */

import { GatewayError, invalid } from '../../conversation/errors.ts';
import type { Memory } from '../../conversation/memory.ts';
import type { Target } from '../../conversation/target.ts';
import type { Conversation } from '../../conversation/types.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { Feature } from '../feature.ts';
import { capture } from './capture.ts';
import { cleanReply } from './clean-reply.ts';
import { type Extension, type MemorySettings, readExtension } from './extension.ts';
import { joinedExtension } from './headers.ts';
import { conversationLanguage } from './language.ts';
import { withInstruction } from './recall-limit.ts';
import { type Locale, limitText, type Texts, textsOf } from './texts.ts';
import { type ConversationTool, conversationTools, MENTION, MESSAGES, RECALL } from './tools.ts';
import { turnQuery } from './turn-text.ts';

export { joinedExtension, unknownHeaders } from './headers.ts';
export type { Locale, Texts } from './texts.ts';
export type { ConversationTool } from './tools.ts';

export interface ConversationOptions {
  /** The member `hopgate` of the body. */
  readonly extension: JsonObject | undefined;
  readonly headers: ReadonlyHeaders;
  /** The gateway key's name, '' without auth. */
  readonly owner: string;
  /** The request as the client made it; decoded only when somebody asks. */
  readonly request: () => Conversation;
  readonly memory: Memory | undefined;
  readonly mayUse: (owner: string, space: string) => boolean;
  /** `auto`: that of the conversation. */
  readonly locale: Locale | 'auto';
  readonly texts: Partial<Texts>;
  readonly onQuery: (query: string, events: number) => void;
  /** Markup of a leaked call was left in a reply, and taken out. */
  readonly onMarkup: (target: Target) => void;
  readonly onCaptureFailed: (thrown: unknown) => void;
}

export interface ConversationParts {
  readonly tools: readonly ConversationTool[];
  /** Calls that are made before the model is asked. */
  readonly forced: readonly {
    readonly name: string;
    readonly input: (request: Conversation) => JsonObject | undefined;
  }[];
  /** It is a chat, and not only a client that wants to see tools at work. */
  readonly chat: boolean;
  /** The client wants to see tools at work. */
  readonly toolEvents: boolean;
  /** The space that is recalled from or captured into. */
  readonly space: string | undefined;
  /** A name for this conversation: what of it is kept for a while is given to no other one. */
  readonly scope: string;
  /** In front of the server tools. */
  readonly before: readonly Feature[];
  /** Behind everything that changes the answer. */
  readonly behind: readonly Feature[];
}

/**
 * Undefined for a request without any extension.
 * @throws GatewayError invalid_request that names the field, permission for another's space
 */
export function conversationParts(options: ConversationOptions): ConversationParts | undefined {
  const value = joinedExtension(options.extension, options.headers);
  if (value === undefined) return undefined;
  const extension = readExtension(value);
  const { round, memory: memorySettings, toolEvents } = extension;
  const space = memorySettings === undefined ? undefined : usedSpace(memorySettings, options);
  const chat = round !== undefined || memorySettings !== undefined;
  const texts = textsOf(
    localeOf(round?.locale ?? options.locale, options),
    options.texts,
    round?.texts,
  );
  const { memory, onQuery } = options;
  const tools = conversationTools({ round, memorySettings, memory, texts, onQuery });
  return {
    tools,
    forced: forcedCalls(extension, tools),
    chat,
    toolEvents,
    space,
    scope: JSON.stringify([
      space ?? '',
      round?.mode ?? '',
      round?.self ?? '',
      round?.members ?? [],
    ]),
    before: chat ? [instructions(tools, memorySettings, texts, options.onMarkup)] : [],
    behind:
      memorySettings?.capture === true && memory !== undefined
        ? [
            capture({
              memory,
              space: memorySettings.space,
              round,
              request: options.request,
              onFailed: options.onCaptureFailed,
            }),
          ]
        : [],
  };
}

const localeOf = (wanted: Locale | 'auto', { request }: ConversationOptions): Locale =>
  wanted === 'auto' ? conversationLanguage(request()) : wanted;

function usedSpace(
  { space, recall, capture }: MemorySettings,
  { memory, mayUse, owner }: ConversationOptions,
): string | undefined {
  if (recall === 'off' && !capture) return undefined;
  if (!mayUse(owner, space)) {
    throw new GatewayError('permission', 'This key may not use that memory space.', {
      param: 'hopgate.memory.space',
    });
  }
  if (memory === undefined) throw invalid('This gateway keeps no memory.', 'hopgate.memory');
  return space;
}

function forcedCalls(
  { round, memory }: Extension,
  tools: readonly ConversationTool[],
): ConversationParts['forced'] {
  if (memory?.recall !== 'always') return [];
  const has = (name: string) => tools.some((tool) => tool.name === name);
  const plain = [MESSAGES, MENTION].filter(has).map((name) => ({ name, input: () => ({}) }));
  const recall = (request: Conversation) => {
    const query = turnQuery(request, round);
    return query === '' ? undefined : { query };
  };
  return [...plain, ...(has(RECALL) ? [{ name: RECALL, input: recall }] : [])];
}

/** Says what the tools alone cannot, leaves the client its own tools, and keeps the reply clean. */
function instructions(
  tools: readonly ConversationTool[],
  memorySettings: MemorySettings | undefined,
  texts: Texts,
  onMarkup: (target: Target) => void,
): Feature {
  const max = memorySettings?.maxRecalls;
  return {
    name: 'conversation-tools',
    request(conversation, { notes }) {
      const own = new Set(
        conversation.tools.flatMap((tool) =>
          tool.type === 'hosted' || tool.namespace !== undefined ? [] : [tool.name],
        ),
      );
      for (const { name } of tools) {
        if (own.has(name)) notes.add('conversation_tool_left_to_client', '/tools', name);
      }
      const recalls = tools.some(({ name }) => name === RECALL) && !own.has(RECALL);
      if (max === undefined || !recalls) return conversation;
      const changed = withInstruction(conversation, limitText(texts, max));
      if (changed !== conversation) notes.add('recall_limit_told', '/system', `at most ${max}`);
      return changed;
    },
    intercept: (_, { target, notes }) =>
      cleanReply(
        () => {
          notes.add('leaked_markup_removed', undefined, 'dsml');
          onMarkup(target);
        },
        // Signed thinking is given back word for word.
        { reasoning: target.protocol !== 'anthropic-messages' },
      ),
  };
}
