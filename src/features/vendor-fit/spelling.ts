/** Finds what the vendor spells differently in a body that would be forwarded unchanged. */

import { withParts } from '../../conversation/edit.ts';
import type { Profile } from '../../conversation/profile-facts.ts';
import { isObject, type JsonObject } from '../../lib/json/json.ts';
import { objects } from '../../lib/json/typed-reads.ts';
import type { FitRule } from './rule.ts';

/**
 * The codec uses the vendor's spelling whenever it writes a body; an unchanged body is forwarded
 * instead. If such a body has a field to be spelled differently, this rule makes the codec write it:
 * it copies the settings, so that they are no longer the decoded reference.
 */
export const fitSpelling: FitRule = (conversation, { profile, protocol, sameProtocol }) => {
  const { origin } = conversation;
  if (!sameProtocol || origin === undefined) return conversation;
  if (
    protocol !== 'openai-chat' &&
    (protocol !== 'google-gemini' || profile.foreignParts !== false)
  )
    return conversation;
  const { parts } = origin;
  const changed =
    conversation.settings !== parts.settings ||
    conversation.turns !== parts.turns ||
    conversation.tools !== parts.tools ||
    conversation.system !== parts.system;
  const isOther = protocol === 'google-gemini' || hasOtherSpelling(origin.value, profile);
  if (changed || !isOther) return conversation;
  return withParts(conversation, { settings: { ...conversation.settings } });
};

const REASONING = [
  'reasoning_effort',
  'reasoning',
  'thinking',
  'enable_thinking',
  'thinking_budget',
];
const SPELLINGS: Readonly<Record<NonNullable<Profile['reasoningParam']>, readonly string[]>> = {
  reasoning_effort: ['reasoning_effort'],
  thinking: ['thinking'],
  enable_thinking: ['enable_thinking', 'thinking_budget'],
  reasoning: ['reasoning'],
  none: [],
};

function hasOtherSpelling(body: JsonObject, profile: Profile): boolean {
  const has = (key: string) => body[key] !== undefined;
  const { maxTokensParam, reasoningParam } = profile;
  if (maxTokensParam !== undefined) {
    if (has(maxTokensParam === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens')) return true;
  }
  if (reasoningParam !== undefined && !SPELLINGS[reasoningParam].some(has) && REASONING.some(has)) {
    return true;
  }
  if (profile.parallelToolsParam === false && has('parallel_tool_calls')) return true;
  const { messageFields } = profile;
  if (messageFields !== undefined) {
    const hasOther = (message: JsonObject) =>
      Object.keys(message).some((key) => !messageFields.includes(key));
    if (objects(body.messages).some(hasOther)) return true;
  }
  if (profile.streamUsage === false && has('stream_options')) return true;
  if (profile.strictTools === false) {
    const strict = ({ function: declared }: JsonObject) =>
      isObject(declared) && declared.strict !== undefined;
    if (objects(body.tools).some(strict)) return true;
  }
  const choice = body.tool_choice;
  if (profile.toolChoices !== undefined && isObject(choice) && choice.type === 'allowed_tools') {
    return true;
  }
  return hasOtherMessageFields(objects(body.messages), profile);
}

function hasOtherMessageFields(messages: readonly JsonObject[], profile: Profile): boolean {
  const { contentParts, foreignParts, developerRole, reasoningField } = profile;
  const looksAtParts =
    contentParts === false || foreignParts === false || profile.emptyReplies === false;
  if (looksAtParts && messages.some(({ content }) => Array.isArray(content))) return true;
  if (developerRole === false && messages.some(({ role }) => role === 'developer')) return true;
  if (reasoningField === undefined) return false;
  const keys = ['reasoning_content', 'reasoning'].filter((key) => key !== reasoningField);
  return messages.some(
    (message) =>
      message.role === 'assistant' &&
      (reasoningField === 'none' || message[reasoningField] === undefined) &&
      keys.some((key) => message[key] !== undefined),
  );
}
