/** Asks a vendor for the usage of an answer where the client did not, and takes that out of the answer again. */

import type { AskedUsage } from '../../codecs/codec.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Target } from '../../conversation/target.ts';
import { wholeBytes } from '../../lib/bytes/byte-list.ts';
import { splice } from '../../lib/bytes/bytes.ts';
import { nextFilled, withFirstMembers } from '../../lib/json/body-members.ts';
import { isObject, topLevel, tryParse } from '../../lib/json/json.ts';
import { topLevelInSlices } from '../../lib/json/large-json.ts';
import type { Attempt, Prepared } from '../types.ts';

const LARGE = 2 * 1024 * 1024;
const COMMA = 0x2c;

/** For requests whose key has a limit that depends on usage: left to the client, it would decide whether it is counted. */
export function askedForUsage(
  { protocol, request, exchange }: Attempt,
  target: Target,
  prepared: Prepared,
  notes: Notes,
): Prepared | Promise<Prepared> {
  const asks = protocol.usageIsAsked;
  if (asks === undefined || protocol !== request.protocol) return prepared;
  const { option, masks } = asks;
  if (masks !== undefined) {
    const search = unmasked(exchange.search, masks, asks.member);
    if (search === undefined) return prepared;
    notes.add('usage_asked', search.param, 'a limit of the key needs it');
    return { ...prepared, search: search.text, ...(search.hidden && { hides: asks }) };
  }
  if (option === undefined || !request.stream) return prepared;
  const asked = bodyAskingForUsage(wholeBytes(prepared.body), target, asks, notes);
  const use = (body: Uint8Array | undefined): Prepared =>
    body === undefined ? prepared : { ...prepared, body, hides: asks };
  return asked instanceof Promise ? asked.then(use) : use(asked);
}

/** The body of a stream with the option that asks for usage; undefined: it asks already, or may not. */
export function bodyAskingForUsage(
  body: Uint8Array,
  target: Target,
  { option }: AskedUsage,
  notes: Notes,
): Uint8Array | undefined | Promise<Uint8Array | undefined> {
  if (option === undefined || !takes(target, option[0])) return undefined;
  const add = (members: ReturnType<typeof topLevel>) => {
    const asked = withOption(body, members, option);
    if (asked !== undefined) notes.add('usage_asked', option[0], 'a limit of the key needs it');
    return asked;
  };
  if (body.length <= LARGE) return add(topLevel(body, new Set([option[0]])));
  return topLevelInSlices(body).then((found) => add(found === 'blank' ? undefined : found));
}

function takes({ profile, refusedFields }: Target, name: string): boolean {
  if (profile.streamUsage === false || profile.dropParams?.includes(name) === true) return false;
  if (profile.renameParams?.[name] !== undefined) return false;
  return refusedFields?.some((path) => path.includes(name)) !== true;
}

/** The body with this option on; undefined: it is on already, or the body is no object. */
function withOption(
  body: Uint8Array,
  members: ReturnType<typeof topLevel>,
  [name, key]: readonly [string, string],
): Uint8Array | undefined {
  if (members === undefined) return undefined;
  const on = JSON.stringify({ [key]: true });
  const member = members.get(name);
  if (member === undefined) return withFirstMembers(body, `${JSON.stringify(name)}:${on}`);
  const { valueStart, valueEnd } = member;
  const value = tryParse(Buffer.from(body.subarray(valueStart, valueEnd)).toString());
  if (isObject(value) && value[key] === true) return undefined;
  const set = isObject(value) ? JSON.stringify({ ...value, [key]: true }) : on;
  return splice(body, valueStart, valueEnd, set);
}

/** A query that selects parts of the answer, with `member` among them; undefined: it selects nothing. */
function unmasked(search: string, masks: readonly string[], member: string) {
  if (search.length < 2) return undefined;
  let param: string | undefined;
  let hidden = true;
  const parts = search
    .slice(1)
    .split('&')
    .map((part) => {
      const [[name, mask] = ['', '']] = [...new URLSearchParams(part)];
      if (!masks.includes(name) || mask === '' || mask === '*') return part;
      param = name;
      if (mask.includes(member)) hidden = false;
      return `${name}=${encodeURIComponent(`${mask},${member}`)}`;
    });
  return param === undefined ? undefined : { text: `?${parts.join('&')}`, param, hidden };
}

/** The JSON of an answer or a frame without the usage; the same text if it has none, '' if it holds nothing else. */
export function withoutUsage(json: string, { member, alone }: AskedUsage): string {
  if (!json.includes(`"${member}"`)) return json;
  const bytes = Buffer.from(json);
  const found = topLevel(bytes, new Set([member]))?.get(member);
  if (found === undefined) return json;
  if (alone !== undefined) {
    const value = tryParse(json);
    const rest = isObject(value) ? value[alone] : undefined;
    const told = isObject(value) && isObject(value[member]);
    if (told && Array.isArray(rest) && rest.length === 0) return '';
  }
  const { keyStart, valueEnd } = found;
  let start = keyStart;
  while (start > 0 && bytes[start - 1]! <= 0x20) start--;
  if (bytes[start - 1] === COMMA) return splice(bytes, start - 1, valueEnd, '').toString();
  const behind = nextFilled(bytes, valueEnd);
  const end = bytes[behind] === COMMA ? nextFilled(bytes, behind + 1) : valueEnd;
  return splice(bytes, keyStart, end, '').toString();
}
