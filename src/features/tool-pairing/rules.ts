/** What each protocol demands of a tool history, as data. */

import type { Target } from '../../conversation/target.ts';
import { MESSAGES_CALL_ID } from '../../conversation/tools/call-ids.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';

export interface PairingRules {
  readonly protocol: ProtocolName;
  /** The conversation came on the target's own wire: what is untouched goes out verbatim. */
  readonly sameProtocol: boolean;
  /**
   * `lead`: results open the input that follows their calls (Messages, Chat). `after`: a result may
   * stand anywhere behind its call (Responses: clients put messages between the two).
   */
  readonly results: 'lead' | 'after';
  /** Neighbouring assistant turns are one turn to the vendor. */
  readonly joinsAssistantTurns: boolean;
  /** Results share a user turn with other content; otherwise each is a turn of its own. */
  readonly resultsShareTurns: boolean;
  /** Instructions amid the dialogue stand apart from it and part nothing (Messages `role: "system"`). */
  readonly asidesAllowed: boolean;
  /** The assistant says nothing behind the last call of a turn (Messages). */
  readonly callsLast: boolean;
  /** `request`: an id names one call in the whole request; `open`: one of those not yet answered. */
  readonly idScope: 'request' | 'open';
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
const hashedId = (prefix: string) => (from: string) =>
  prefix + Bun.hash.xxHash64(from).toString(16).padStart(16, '0');

/** Mistral: nine letters and digits, nothing else. */
const NINE_CHARACTERS = /^[a-zA-Z0-9]{9}$/;
const nineCharacterId = (from: string): string =>
  Bun.hash.xxHash64(from).toString(36).padStart(9, '0').slice(-9);

/** The rules for this conversation at this target. */
export function rulesFor(conversation: Conversation, target: Target): PairingRules {
  const rules = protocolRules(conversation, target);
  return target.profile.callIds === 'nine-alphanumeric'
    ? { ...rules, legalId: (id) => NINE_CHARACTERS.test(id), makeId: nineCharacterId }
    : rules;
}

function protocolRules(conversation: Conversation, target: Target): PairingRules {
  const { protocol } = target;
  const sameProtocol = conversation.origin?.protocol === protocol;
  switch (protocol) {
    case 'anthropic-messages':
      return {
        protocol,
        sameProtocol,
        results: 'lead',
        joinsAssistantTurns: true,
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
        protocol,
        sameProtocol,
        results: 'lead',
        // Neighbours of another protocol become one message; Chat's own stand for themselves.
        joinsAssistantTurns: !sameProtocol,
        resultsShareTurns: !sameProtocol,
        asidesAllowed: false,
        callsLast: false,
        idScope: 'open',
        legalId: openaiId,
        makeId: hashedId('call_'),
        where: '/messages',
      };
    case 'openai-responses':
      return {
        protocol,
        sameProtocol,
        results: 'after',
        joinsAssistantTurns: true,
        resultsShareTurns: !sameProtocol,
        asidesAllowed: false,
        callsLast: false,
        idScope: 'open',
        legalId: openaiId,
        makeId: hashedId('call_'),
        where: '/input',
      };
  }
}

/** Counts of what one request lost; each becomes one note. */
export interface RepairCounts {
  blank: number;
  thinking: number;
  foreign: number;
  cache: number;
}
