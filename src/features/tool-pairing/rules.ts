/** Requirements of each protocol for a history with tools, as data. */

import type { Notes } from '../../conversation/notes.ts';
import type { Target } from '../../conversation/target.ts';
import { MESSAGES_CALL_ID } from '../../conversation/tools/call-ids.ts';
import type {
  Conversation,
  ProtocolName,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../conversation/types.ts';
import { isObject } from '../../lib/json/json.ts';

export interface PairingRules {
  readonly protocol: ProtocolName;
  /** The conversation came in the target's protocol: unchanged parts go out verbatim. */
  readonly sameProtocol: boolean;
  /**
   * `lead`: results come first in the input that follows their calls (Messages, Chat). `after`: a result
   * may stand anywhere after its call (Responses, where clients put messages between the two).
   */
  readonly results: 'lead' | 'after';
  /** The vendor reads neighbouring assistant turns as one turn. */
  readonly joinsAssistantTurns: boolean;
  /** Results share a user turn with other content; otherwise each is a turn of its own. */
  readonly resultsShareTurns: boolean;
  /** Instructions in mid-dialogue are asides, which separate nothing (Messages `role: "system"`). */
  readonly asidesAllowed: boolean;
  /** No text may follow the last call of a turn (Messages). */
  readonly callsLast: boolean;
  /** Where an id must be unique: in the whole `request`, or among the `open` (unanswered) calls. */
  readonly idScope: 'request' | 'open';
  readonly legalId: (id: string) => boolean;
  /** Makes a legal id that depends only on the given text. */
  readonly makeId: (from: string) => string;
  /** The history's JSON pointer in the body. */
  readonly where: '/messages' | '/input' | '/contents';
}

// "string too long. Expected a string with maximum length 64": Chat's tool_calls[].id and Responses' call_id.
const OPENAI_ID_LIMIT = 64;
const openaiId = (id: string): boolean => id !== '' && id.length <= OPENAI_ID_LIMIT;

/** The prefix and 16 hex digits: at most 22 characters, which nearly every vendor accepts. */
const hashedId = (prefix: string) => (from: string) =>
  prefix + Bun.hash.xxHash64(from).toString(16).padStart(16, '0');

/** Mistral accepts exactly nine letters and digits. */
const NINE_CHARACTERS = /^[a-zA-Z0-9]{9}$/;
const nineCharacterId = (from: string): string =>
  Bun.hash.xxHash64(from).toString(36).padStart(9, '0').slice(-9);

export function rulesFor(conversation: Conversation, target: Target): PairingRules {
  const rules = protocolRules(conversation, target);
  return target.profile.callIds === 'nine-alphanumeric'
    ? { ...rules, legalId: (id) => NINE_CHARACTERS.test(id), makeId: nineCharacterId }
    : rules;
}

const USUAL = {
  results: 'lead',
  joinsAssistantTurns: true,
  asidesAllowed: false,
  callsLast: false,
  idScope: 'open',
  makeId: hashedId('call_'),
} as const;

function protocolRules(conversation: Conversation, target: Target): PairingRules {
  const { protocol } = target;
  const sameProtocol = conversation.origin?.protocol === protocol;
  const usual = { ...USUAL, protocol, sameProtocol };
  switch (protocol) {
    case 'anthropic-messages':
      return {
        ...usual,
        resultsShareTurns: true,
        asidesAllowed: sameProtocol && target.profile.systemTurns !== false,
        callsLast: true,
        idScope: 'request',
        legalId: (id) => MESSAGES_CALL_ID.test(id),
        makeId: hashedId('toolu_'),
        where: '/messages',
      };
    case 'openai-chat':
      return {
        ...usual,
        // Neighbours of another protocol become one message; Chat's own stay separate.
        joinsAssistantTurns: !sameProtocol,
        resultsShareTurns: !sameProtocol,
        legalId: openaiId,
        where: '/messages',
      };
    case 'openai-responses':
      return {
        ...usual,
        results: 'after',
        resultsShareTurns: !sameProtocol,
        legalId: openaiId,
        where: '/input',
      };
    case 'google-gemini':
      // "function response turn comes immediately after a function call turn"
      return { ...usual, resultsShareTurns: true, legalId: (id) => id !== '', where: '/contents' };
  }
}

/** Counts of removed parts of one request; each becomes one note. */
export const noCounts = () => ({ blank: 0, thinking: 0, foreign: 0, cache: 0, renamed: 0 });

export type RepairCounts = ReturnType<typeof noCounts>;

/** One repair of a history: its rules, for whom it is, and what it did. */
export interface Repair {
  readonly rules: PairingRules;
  readonly target: Target;
  /** The provider that made the seals of the history, if known. */
  readonly madeBy: string | undefined;
  readonly notes: Notes;
  readonly counts: RepairCounts;
}

/**
 * Is this a call or result that must be paired? Not those of the vendor's own tools, and not Chat's legacy
 * functions, which the API pairs by name or not at all.
 */
export function mustPair(
  block: ToolCallBlock | ToolResultBlock,
  turn: Turn,
  rules: PairingRules,
): boolean {
  if (block.by === 'provider') return false;
  if (rules.protocol !== 'openai-chat' || !rules.sameProtocol) return true;
  const value = (turn.wire ?? turn.residue)?.value;
  if (!isObject(value)) return true;
  if (value.role === 'function') return false;
  return block.type === 'tool-result' || (block.wire ?? block.residue) !== undefined;
}

/** The request continues a conversation stored by the server, which may hold calls that are not sent. */
export function isContinued({ origin, turns }: Conversation): boolean {
  if (origin?.protocol !== 'openai-responses') return false;
  const { previous_response_id: previous, conversation, prompt, store } = origin.value;
  if ([previous, conversation, prompt].some((value) => value !== undefined && value !== null)) {
    return true;
  }
  return (
    store !== false &&
    turns.some(({ blocks }) =>
      blocks.some((b) => b.type === 'opaque' && b.name === 'item_reference'),
    )
  );
}
