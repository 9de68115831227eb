/** A chat app's extension of a request, as tools, forced calls and features of that exchange. */

import { isInstruction } from '../../conversation/edit.ts';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import type { Memory } from '../../conversation/memory.ts';
import type { Target } from '../../conversation/target.ts';
import type { Block, Conversation, Turn } from '../../conversation/types.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { countOf, isChinese, LETTERS } from '../../lib/text/words.ts';
import type { Feature } from '../feature.ts';
import { capture, turnQuery } from './capture.ts';
import { chatFeature } from './chat-feature.ts';
import { type Extension, type MemorySettings, readExtension } from './extension.ts';
import { joinedExtension } from './headers.ts';
import { type Locale, limitText, type Texts, textsOf } from './texts.ts';
import { type ConversationTool, conversationTools, MENTION, MESSAGES, RECALL } from './tools.ts';

export { joinedExtension, unknownHeaders } from './headers.ts';
export type { Locale, Texts } from './texts.ts';
export type { ConversationTool } from './tools.ts';

export interface ConversationOptions {
  /** The member `hopgate` of the body. */
  readonly extension: JsonObject | undefined;
  readonly headers: ReadonlyHeaders;
  /** The request as the client made it; decoded on the first call. */
  readonly request: () => Conversation;
  readonly memory: Memory | undefined;
  readonly mayUse: (space: string) => boolean;
  /** `auto`: the language of the conversation. */
  readonly locale: Locale | 'auto';
  readonly texts: Partial<Texts>;
  readonly onQuery: (query: string, events: number) => void;
  /** Called when the markup of a leaked call was removed from a reply. */
  readonly onMarkup: (target: Target) => void;
  readonly onCaptureFailed: (thrown: unknown) => void;
}

export interface ConversationParts {
  readonly tools: readonly ConversationTool[];
  /** Calls made before the model is asked. */
  readonly forced: readonly {
    readonly name: string;
    readonly input: (request: Conversation) => JsonObject | undefined;
  }[];
  /** It is a chat, not only a client that wants tool events. */
  readonly chat: boolean;
  /** The client wants tool events. */
  readonly toolEvents: boolean;
  /** The space that is recalled from or captured into. */
  readonly space: string | undefined;
  /** Identifies the conversation, so that no other one gets what is stored for it. */
  readonly scope: string;
  /** Features before the server tools. */
  readonly before: readonly Feature[];
  /** Features after everything that changes the answer. */
  readonly after: readonly Feature[];
}

/**
 * Undefined for a request without an extension.
 * @throws GatewayError invalid_request that names the field, or permission for a space of others
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
  const max = memorySettings?.maxRecalls;
  const recallLimit = max === undefined ? undefined : { max, sentence: limitText(texts, max) };
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
    before: chat ? [chatFeature({ tools, recallLimit, onMarkup: options.onMarkup })] : [],
    after:
      memorySettings?.capture === true && memory !== undefined
        ? [
            capture({
              memory,
              space: memorySettings.space,
              round,
              turn: memorySettings.turn,
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
  { memory, mayUse }: ConversationOptions,
): string | undefined {
  if (recall === 'off' && !capture) return undefined;
  if (!mayUse(space)) {
    throw new GatewayError('permission', 'This key may not use that memory space.', {
      param: 'hopgate.memory.space',
    });
  }
  if (memory === undefined)
    throw invalid('The memory of this gateway is switched off.', 'hopgate.memory');
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

/** Characters of a text that are read. */
const SAMPLE = 4000;
/** Instructions with fewer letters do not decide the language. */
const ENOUGH = 20;
const textOf = (blocks: readonly Block[]): string => {
  let text = '';
  for (const block of blocks) {
    if (block.type === 'text') text += `${block.text.slice(0, SAMPLE)}\n`;
    if (text.length >= SAMPLE) break;
  }
  return text.slice(0, SAMPLE);
};

const firstOf = (turns: readonly Turn[], role: (turn: Turn) => boolean): string => {
  for (const turn of turns) {
    if (!role(turn)) continue;
    const text = textOf(turn.blocks);
    if (text.trim() !== '') return text;
  }
  return '';
};

/**
 * The language of the instructions, otherwise of the first user message. Both stay the same over the
 * turns of a conversation, so that a vendor's prompt cache stays valid.
 */
export function conversationLanguage({
  system,
  turns,
}: Pick<Conversation, 'system' | 'turns'>): Locale {
  const own = textOf(system);
  const instructions = own.trim() !== '' ? own : firstOf(turns, isInstruction);
  const decides =
    countOf(instructions, LETTERS) >= ENOUGH
      ? instructions
      : firstOf(turns, ({ role }) => role === 'user') || instructions;
  return isChinese(decides) ? 'zh' : 'en';
}
