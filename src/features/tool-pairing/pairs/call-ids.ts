/** Rewrites ids of calls that the target refuses; new ids are derived from the old ones. */

import { wrapCallId } from '../../../conversation/tools/call-ids.ts';
import { isObject } from '../../../lib/json/json.ts';
import type { PairingRules } from '../rules.ts';
import type { CallTable, IndexedCall } from './index-calls.ts';

/** Ids of tools that the vendor runs. */
const SERVER_ID = /^srvtoolu_/;

/**
 * New ids for the calls that need one. An id depends only on the old one and on the number of earlier calls
 * with the same id. So a call has the same id in every later request, as prompt caches require.
 * @param renamed calls that came as server tools but are the client's; they must not keep a server id
 */
export function newIds(
  table: CallTable,
  rules: PairingRules,
  renamed: ReadonlySet<unknown>,
): ReadonlyMap<IndexedCall, string> {
  const out = new Map<IndexedCall, string>();
  let taken: Set<string> | undefined;
  const named = new Map<string, IndexedCall>();
  for (const call of table.calls) {
    const { id } = call.block;
    const earlier = named.get(id);
    const free =
      earlier === undefined || (rules.idScope === 'open' && answeredBefore(earlier, call));
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

/** Does its result come before the other call? A missing result will be added right after it. */
function answeredBefore(earlier: IndexedCall, call: IndexedCall): boolean {
  if (earlier.run === call.run) return false;
  const { result } = earlier;
  return result === undefined || result.position < call.position;
}

/** The client sent back an id that carries the vendor's own one. */
function isCarried({ block }: IndexedCall, rules: PairingRules): boolean {
  const from = rules.sameProtocol ? (block.wire ?? block.residue)?.value : undefined;
  if (!isObject(from) || typeof from.id !== 'string' || from.id === block.id) return false;
  return rules.legalId(from.id) && wrapCallId(block.id) === from.id;
}
