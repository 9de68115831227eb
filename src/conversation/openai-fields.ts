/** Fields and values that OpenAI's two protocols share. */

import { isObject, type Json } from '../lib/json/json.ts';
import { memberOf } from '../lib/json/json-members.ts';
import { sha256Hex } from '../lib/text/sha256.ts';
import type { Notes } from './notes.ts';

/** Fields that only OpenAI's Chat and Responses have, under the same name. */
export const SHARED_FIELDS: readonly string[] = [
  'safety_identifier',
  'prompt_cache_retention',
  'prompt_cache_options',
];

/** Characters of a safety identifier and of a cache key. OpenAI recommends hashes (platform.openai.com/docs/api-reference/responses/create). */
const MAX_IDENTIFIER = 64;

/** An identifier within OpenAI's limit: one that is too long is its hash, so that the same one stays the same. */
export function shortIdentifier(text: string, field: string, notes: Notes): string {
  if (text.length <= MAX_IDENTIFIER) return text;
  notes.add('parameter_mapped', field, 'too long: its hash');
  return sha256Hex(text).slice(0, MAX_IDENTIFIER);
}

/** The value of a {@link SHARED_FIELDS} that the other protocol takes. */
export const sharedField = (field: string, value: Json | undefined, notes: Notes) =>
  field === 'safety_identifier' && typeof value === 'string'
    ? shortIdentifier(value, field, notes)
    : value;

// Longer ones are refused: `Invalid 'user': string too long`.
const MAX_USER = 64;

/**
 * A `user` that the vendor accepts; undefined, with a note, if it is too long.
 * @param most characters; left out: OpenAI's limit
 */
export function acceptedUser(
  user: string | undefined,
  notes: Notes,
  most = MAX_USER,
): string | undefined {
  if (user === undefined || user.length <= most) return user;
  notes.add('parameter_dropped', 'user', 'too long');
  return undefined;
}

const TIERS: Readonly<Record<string, string>> = {
  auto: 'auto',
  default: 'default',
  flex: 'flex',
  scale: 'scale',
  priority: 'priority',
  // Anthropic's name for it.
  standard: 'default',
};

/** The service tier of an answer in OpenAI's terms; undefined if OpenAI has no such tier. */
export const openaiServiceTier = (tier: Json | undefined): string | undefined =>
  typeof tier === 'string' ? memberOf(TIERS, tier) : undefined;

/** The format of a freeform tool in the form of Responses. Chat nests a grammar one level deeper. */
export function flatToolFormat(format: Json | undefined): Json | undefined {
  if (!isObject(format) || !isObject(format.grammar)) return format;
  return { type: 'grammar', ...format.grammar };
}
