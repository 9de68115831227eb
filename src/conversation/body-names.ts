/** Names in a request body that other parsers may read in another way: a vendor's must see the request that was checked here. */

import {
  countMembers,
  isObject,
  type Json,
  type Member,
  topLevel,
  tryParse,
} from '../lib/json/json.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { wordSet } from '../lib/text/words.ts';
import { type GatewayError, invalid } from './errors.ts';

export type Members = ReadonlyMap<string, Member> & { readonly repeated?: string | undefined };

/**
 * Names that this gateway acts on. Parsers in Go accept any letter case of a name (https://pkg.go.dev/encoding/json#Unmarshal),
 * so `Model` is another model there, and `N` another number of answers.
 */
const NAMES = wordSet(`
  background best_of cachedContent cached_content container conversation fallbacks functions
  generationConfig generation_config hopgate max_completion_tokens max_output_tokens max_tokens mcp_servers
  model models n plugins preset previous_response_id prompt service_tier stream stream_options tool_choice
  toolConfig tools web_search_options`);
const SPELLED: ReadonlyMap<string, string> = new Map(
  Array.from(NAMES, (name) => [folded(name), name]),
);
/** Most names have none of these; beyond ASCII are the long s and the Kelvin sign. */
const UNUSUAL = /[A-Z\u0080-\uffff]/;
const CAPITAL = /[A-Z]/g;

/** The conversation itself: nothing in it is limited by name, and it is long. */
const CONVERSATION = wordSet('contents input messages system systemInstruction system_instruction');

/** Without letter case, as Go compares: through upper case, which the long s and the Kelvin sign share with s and k. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

const twice = (name: string): GatewayError => {
  const shown = printableLine(name, 60);
  return invalid(`The request body has the member '${shown}' twice.`, shown);
};

/**
 * Parsers disagree about which of two members of one name counts (RFC 8259 §4), so what is checked, priced and
 * routed here could be another request to the vendor.
 * @throws GatewayError invalid_request
 */
export function checkNames(members: Members): void {
  if (members.repeated !== undefined) throw twice(members.repeated);
  for (const name of members.keys()) checkSpelling(name, members);
}

/** As {@link checkNames}, for a body that is parsed already. */
export function checkNamesOf(value: Json, bytes: Uint8Array): void {
  if (!isObject(value)) return;
  const names = Object.keys(value);
  let others: ReadonlySet<string> | undefined;
  for (const name of names) {
    if (!UNUSUAL.test(name)) continue;
    others ??= new Set(names);
    checkSpelling(name, others);
  }
  if (names.length === countMembers(bytes)) return;
  // Without members that can be told apart there is nothing to complain about.
  const { repeated } = topLevel(bytes) ?? {};
  if (repeated !== undefined) throw twice(repeated);
}

function checkSpelling(name: string, others: { has(name: string): boolean }): void {
  if (!UNUSUAL.test(name)) return;
  const known = SPELLED.get(folded(name));
  if (known !== undefined && known !== name) {
    const shown = printableLine(name, 60);
    const words = `The member '${shown}' of the request body is '${known}' to some vendors; write it like that.`;
    throw invalid(words, shown);
  }
  // Google's APIs take both spellings of a field (https://protobuf.dev/programming-guides/json).
  const snake = name.replace(CAPITAL, (letter) => `_${letter.toLowerCase()}`);
  if (known !== undefined && others.has(snake)) throw twice(name);
}

/**
 * For a key that is limited in tools, models, tokens or money: no object beside the conversation has a name twice.
 * @throws GatewayError invalid_request
 */
export function checkNested(bytes: Buffer, members: Members = topLevel(bytes) ?? new Map()): void {
  for (const [name, { valueStart, valueEnd }] of members) {
    if (CONVERSATION.has(name) || valueEnd - valueStart < 3) continue;
    const own = bytes.subarray(valueStart, valueEnd);
    if (own[0] !== 0x7b && own[0] !== 0x5b) continue;
    const value = tryParse(own.toString());
    if (value === undefined || !hasRepeatedNames(own, value)) continue;
    const shown = printableLine(name, 60);
    throw invalid(`An object in '${shown}' of the request body has a member twice.`, shown);
  }
}

/**
 * Has any object in it a name twice? Linear in the size of the body.
 * @param value of these bytes
 */
export const hasRepeatedNames = (bytes: Uint8Array, value: Json): boolean =>
  countNames(value) !== countMembers(bytes, true);

/** Members of all objects in a value. */
function countNames(value: Json): number {
  const open: Json[] = [value];
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (Array.isArray(next)) for (const item of next) open.push(item);
    else if (isObject(next)) {
      const values = Object.values(next) as Json[];
      count += values.length;
      for (const item of values) open.push(item);
    }
  }
  return count;
}
