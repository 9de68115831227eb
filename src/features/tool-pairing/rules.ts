/** What each protocol demands of a tool history, as data. */

import type { Target } from '../../conversation/target.ts';
import { MESSAGES_CALL_ID } from '../../conversation/tools/call-ids.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';

export interface Rules {
  readonly protocol: ProtocolName;
  /** The conversation came on the target's own wire: what is untouched goes out verbatim. */
  readonly own: boolean;
  /**
   * `lead`: results open the input that follows their calls (Messages, Chat). `after`: a result may
   * stand anywhere behind its call (Responses: clients put messages between the two).
   */
  readonly results: 'lead' | 'after';
  /** Neighbouring assistant turns are one turn to the vendor. */
  readonly joins: boolean;
  /** Results share a user turn with other content; otherwise each is a turn of its own. */
  readonly shared: boolean;
  /** Instructions amid the dialogue stand apart from it and part nothing (Messages `role: "system"`). */
  readonly asides: boolean;
  /** The assistant says nothing behind the last call of a turn (Messages). */
  readonly callsLast: boolean;
  /** `request`: an id names one call in the whole request; `open`: one of those not yet answered. */
  readonly unique: 'request' | 'open';
  readonly legalId: (id: string) => boolean;
  /** A legal id that depends on nothing but the text. */
  readonly makeId: (from: string) => string;
  /** Where the history stands in the body, as a JSON pointer. */
  readonly where: '/messages' | '/input';
}

// "string too long. Expected a string with maximum length 64": Chat's tool_calls[].id and Responses' call_id.
const OPENAI_ID_LIMIT = 64;
const openaiId = (id: string): boolean => id !== '' && id.length <= OPENAI_ID_LIMIT;

/** 16 hex digits behind the prefix: 22 characters at most, which nearly every vendor takes. */
const hashed = (prefix: string) => (from: string) =>
  prefix + Bun.hash.xxHash64(from).toString(16).padStart(16, '0');

/** Mistral: nine letters and digits, nothing else. */
const NINE = /^[a-zA-Z0-9]{9}$/;
const nine = (from: string): string =>
  Bun.hash.xxHash64(from).toString(36).padStart(9, '0').slice(-9);

/** The rules for this conversation at this target. */
export function rulesFor(conversation: Conversation, target: Target): Rules {
  const rules = ofProtocol(conversation, target);
  return target.profile.callIds === 'nine-alphanumeric'
    ? { ...rules, legalId: (id) => NINE.test(id), makeId: nine }
    : rules;
}

function ofProtocol(conversation: Conversation, target: Target): Rules {
  const { protocol } = target;
  const own = conversation.origin?.protocol === protocol;
  switch (protocol) {
    case 'anthropic-messages':
      return {
        protocol,
        own,
        results: 'lead',
        joins: true,
        shared: true,
        asides: own && target.profile.systemTurns !== false,
        callsLast: true,
        unique: 'request',
        legalId: (id) => MESSAGES_CALL_ID.test(id),
        makeId: hashed('toolu_'),
        where: '/messages',
      };
    case 'openai-chat':
      return {
        protocol,
        own,
        results: 'lead',
        // Neighbours of another protocol become one message; Chat's own stand for themselves.
        joins: !own,
        shared: !own,
        asides: false,
        callsLast: false,
        unique: 'open',
        legalId: openaiId,
        makeId: hashed('call_'),
        where: '/messages',
      };
    case 'openai-responses':
      return {
        protocol,
        own,
        results: 'after',
        joins: true,
        shared: !own,
        asides: false,
        callsLast: false,
        unique: 'open',
        legalId: openaiId,
        makeId: hashed('call_'),
        where: '/input',
      };
  }
}

/** Counts of what one request lost; each becomes one note. */
export interface Tally {
  blank: number;
  thinking: number;
  foreign: number;
  cache: number;
}
