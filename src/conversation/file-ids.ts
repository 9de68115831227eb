/** Files that a vendor keeps, as requests of OpenAI and Anthropic name them: a key may name its own alone. */

import { asBuffer, containsAny } from '../lib/bytes/bytes.ts';
import { isObject, type Json, tryParse } from '../lib/json/json.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { GatewayError } from './errors.ts';

// A name in JSON may be written with escapes.
const MARKS = ['file_id', '\\u006', '\\u005', '\\u007'].map((text) => Buffer.from(text));

/** False: no file is named in this JSON. Costs a native search. */
export const mayNameFiles = (body: Buffer): boolean => containsAny(body, MARKS);

/** The values of all members `file_id` and `file_ids`, however deep. Linear in the size of the value. */
export function fileIdsIn(value: Json | undefined): ReadonlySet<string> {
  const ids = new Set<string>();
  const open: (Json | undefined)[] = [value];
  while (open.length > 0) {
    const one = open.pop();
    if (Array.isArray(one)) for (const item of one) open.push(item);
    if (!isObject(one)) continue;
    for (const [name, member] of Object.entries(one)) {
      if (name === 'file_id' && typeof member === 'string') ids.add(member);
      else if (name === 'file_ids' && Array.isArray(member)) {
        for (const id of member) if (typeof id === 'string') ids.add(id);
      } else if (typeof member === 'object') open.push(member);
    }
  }
  return ids;
}

/** Those of the ids that other owners have here, and this one has not. Rejects where that cannot be found out. */
export type ForeignFiles = (owner: string, ids: readonly string[]) => Promise<readonly string[]>;

/** What another key has is as if it were not there. @param kind `file` or `batch` */
export const notMadeHere = (kind: string, id: string): GatewayError =>
  new GatewayError(
    'not_found',
    `There is no ${kind} '${printableLine(id, 200)}' that was made with this key through this gateway.`,
    { code: `${kind}_not_found`, retryable: false },
  );

/** @throws GatewayError not_found for a file of another key, overloaded where the owners cannot be read */
export async function checkFiles(
  ids: ReadonlySet<string>,
  owner: string,
  foreign: ForeignFiles,
): Promise<void> {
  if (ids.size === 0) return;
  let found: readonly string[];
  try {
    found = await foreign(owner, [...ids]);
  } catch (cause) {
    throw new GatewayError('overloaded', 'The owners of files cannot be read at the moment.', {
      code: 'file_owners_unavailable',
      retryAfter: 5,
      cause,
    });
  }
  if (found.length > 0) throw notMadeHere('file', found[0]!);
}

/** {@link checkFiles} for a body that is not parsed yet, as those of endpoints. @throws as there */
export async function checkFilesOf(
  body: Uint8Array,
  owner: string,
  foreign: ForeignFiles,
): Promise<void> {
  const bytes = asBuffer(body);
  if (mayNameFiles(bytes)) await checkFiles(fileIdsIn(tryParse(bytes.toString())), owner, foreign);
}
