/** Ids of calls as the target takes them: accepted ones stay, the others are made from what they were. */

import { wrapCallId } from '../../conversation/tools/call-ids.ts';
import { isObject } from '../../lib/json/json.ts';
import type { Call, Table } from './index-calls.ts';
import type { Rules } from './rules.ts';

/** Ids that belong to tools which the vendor runs. */
const SERVER_ID = /^srvtoolu_/;

/**
 * The new ids of those calls that need one. An id depends on the old one and on how many calls of it
 * came before, on nothing behind it: the same call has the same id in every later request, which the
 * vendors' prompt caches want.
 * @param renamed calls of a server tool's kind that turned out to be the client's own: a server
 * tool's id does not go out on them
 */
export function newIds(
  table: Table,
  rules: Rules,
  renamed: ReadonlySet<unknown>,
): ReadonlyMap<Call, string> {
  const out = new Map<Call, string>();
  let taken: Set<string> | undefined;
  const named = new Map<string, Call>();
  for (const call of table.calls) {
    const { id } = call.block;
    const earlier = named.get(id);
    const free =
      earlier === undefined || (rules.unique === 'open' && answeredBefore(earlier, call));
    const serverId = renamed.has(call.block) && SERVER_ID.test(id);
    if (free && (rules.legalId(id) || isCarried(call, rules)) && !serverId) {
      named.set(id, call);
      continue;
    }
    taken ??= new Set(table.calls.map(({ block }) => block.id));
    let made = rules.makeId(call.ordinal === 0 ? id : `${id}\0${call.ordinal}`);
    for (let i = 1; taken.has(made); i++) {
      made = rules.makeId(`${id}\0${call.ordinal}\0${i}`);
    }
    taken.add(made);
    out.set(call, made);
  }
  return out;
}

/** Its result stands before the other call; one that stands nowhere will follow it at once. */
function answeredBefore(earlier: Call, call: Call): boolean {
  if (earlier.run === call.run) return false;
  const { result } = earlier;
  return result === undefined || result.position < call.position;
}

/** The client has it under an id that the target takes, and gives back what was made of the vendor's own. */
function isCarried({ block }: Call, rules: Rules): boolean {
  const from = rules.own ? (block.wire ?? block.residue)?.value : undefined;
  if (!isObject(from) || typeof from.id !== 'string' || from.id === block.id) return false;
  return rules.legalId(from.id) && wrapCallId(block.id) === from.id;
}
