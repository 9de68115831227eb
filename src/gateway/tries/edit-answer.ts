/** Edits every answer for the client: renames the model, and hides usage that only the gateway asked for. */

import type { AskedUsage, Codec } from '../../codecs/codec.ts';
import { splice } from '../../lib/bytes/bytes.ts';
import { topLevel } from '../../lib/json/json.ts';
import type { EditAnswer, Reading } from '../types.ts';
import { withoutUsage } from './asked-usage.ts';

/** Undefined for nearly all answers: nothing is changed. */
export function editOf({ attempt, prepared }: Reading): EditAnswer | undefined {
  const { hides } = prepared;
  const { shownModel } = attempt;
  const usage = hides && withoutUsageOf(hides);
  return shownModel === undefined
    ? usage
    : withModelOf(shownModel, attempt.request.protocol.modelAt, usage);
}

const withModelOf = (
  shown: string,
  modelAt: Codec['modelAt'],
  usage: EditAnswer | undefined,
): EditAnswer => ({
  hidden: usage?.hidden,
  json: (json, of) => withText(usage?.json(json, of) ?? json, modelAt[of], shown),
});

export const withoutUsageOf = (hides: AskedUsage): EditAnswer => ({
  hidden: hides.member,
  json: (json) => withoutUsage(json, hides),
});

/** The JSON with this text as the member at the path; the same where no text stands there. */
export function withText(json: string, path: readonly string[], text: string): string {
  if (!json.includes(`"${path.at(-1)}"`)) return json;
  const bytes = Buffer.from(json);
  let from = 0;
  let to = bytes.length;
  for (const name of path) {
    const member = topLevel(bytes.subarray(from, to), new Set([name]))?.get(name);
    if (member === undefined) return json;
    to = from + member.valueEnd;
    from += member.valueStart;
  }
  return bytes[from] === QUOTE ? splice(bytes, from, to, JSON.stringify(text)).toString() : json;
}

const QUOTE = 0x22;
