/** Stored responses for tests, and what a store says of them. */

import {
  RESPONSES,
  ResponseStore,
  type ResponseStoreOptions,
  type StoredResponse,
} from '../../src/features/response-store/index.ts';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { openSqlite } from '../../src/state/sql/sqlite.ts';

/** A store in a file, as a gateway without engines has it. */
export const fileStore = (path: string, more: ResponseStoreOptions = {}): ResponseStore =>
  new ResponseStore({
    database: () => openSqlite(RESPONSES, { path, shrinks: true }),
    name: path,
    ...more,
  });

export const say = (text: string): JsonObject => ({ type: 'message', role: 'user', content: text });

/** One exchange: `in ID` was asked, and `to ID` answered, by the item `msg_ID`. */
export function storedRow(
  id: string,
  previous?: string,
  more: Partial<StoredResponse> = {},
): StoredResponse {
  const output: JsonObject[] = [
    { type: 'message', id: `msg_${id}`, role: 'assistant', content: `to ${id}` },
  ];
  return {
    id,
    owner: '',
    created: 1_700_000_000,
    previous,
    model: 'm',
    input: [say(`in ${id}`)],
    output,
    response: { id, object: 'response', status: 'completed', output },
    ...more,
  };
}

/** The texts of a conversation, or which link is missing. */
export async function conversation(
  store: ResponseStore,
  id: string,
  owner = '',
): Promise<readonly unknown[] | string> {
  const reads = await store.fetch({ responses: [id], chains: true }, owner);
  const chain = await reads.chain(id, owner);
  return 'missing' in chain
    ? `missing ${chain.missing}`
    : chain.items.map(({ content }) => content);
}

/** The text of an output item; undefined: it is not known. */
export async function itemText(store: ResponseStore, item: string, owner = ''): Promise<unknown> {
  const reads = await store.fetch({ items: [item] }, owner);
  return reads.items([item], owner).get(item)?.item.content;
}
