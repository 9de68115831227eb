/** A request to create a response, from the body of a POST to the frame of a vendor's WebSocket. */

import type { Member } from '../../lib/json/json.ts';
import { topLevel } from '../../lib/json/json.ts';
import { topLevelInSlices } from '../../lib/json/large-json.ts';

/** What is larger is looked through in slices. */
const LARGE = 2 * 1024 * 1024;
const BEGIN = '{"type":"response.create"';
// A socket streams always, and has no background.
const LEFT_OUT = new Set(['type', 'stream', 'background']);

/** The frame for this body; undefined where no stream is asked for, or a job in the background. */
export function createFrame(body: Uint8Array): string | undefined | Promise<string | undefined> {
  if (body.length <= LARGE) return frameOf(body, topLevel(body));
  return topLevelInSlices(body).then((members) =>
    members === 'blank' ? undefined : frameOf(body, members),
  );
}

function frameOf(
  body: Uint8Array,
  members: ReadonlyMap<string, Member> | undefined,
): string | undefined {
  if (members === undefined) return undefined;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const saysTrue = (key: string) => {
    const at = members.get(key);
    return at !== undefined && bytes.toString('latin1', at.valueStart, at.valueEnd) === 'true';
  };
  if (!saysTrue('stream') || saysTrue('background')) return undefined;
  const parts = [BEGIN];
  for (const [key, { keyStart, valueEnd }] of members) {
    if (!LEFT_OUT.has(key)) parts.push(bytes.toString('utf8', keyStart, valueEnd));
  }
  return `${parts.join(',')}}`;
}
