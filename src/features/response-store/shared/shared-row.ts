/** A stored response as the shared engines hold it: its texts compressed and sealed, beside what it is found by. */

import { isObject, type JsonObject, parseJson, tryParse } from '../../../lib/json/json.ts';
import type { TextSeal } from '../../../state/text-seal.ts';
import { itemIdsOf, type StoredResponse } from '../stored-response.ts';

export interface SharedRow {
  readonly owner: string;
  readonly id: string;
  /** Of its conversation: rows of one are pruned together. */
  readonly thread: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly previous: string | null;
  readonly model: string;
  readonly space: string | null;
  readonly keeper: string | null;
  /** When its request came, in milliseconds since 1970 by the clock of whoever holds the row. */
  readonly began: number;
  /** Sealed: the input and output items. */
  readonly items: Uint8Array;
  /** Sealed: the response object. Empty where only the items were read. */
  readonly response: Uint8Array;
  /** UTF-16 units of the texts, which the limit on bytes counts. */
  readonly bytes: number;
  /** Of the output items that a later request may refer to. */
  readonly itemIds: readonly string[];
}

/** A longer id fits into no index. */
const MAX_ID = 512;

/** Can it be an id in the database? */
export const isUsable = (id: string): boolean => id.length <= MAX_ID && !id.includes('\0');

/** Undefined: its id cannot be stored. */
export function sharedRow(
  row: StoredResponse & { readonly began: number },
  thread: string,
  seal: TextSeal,
): SharedRow | undefined {
  const { owner, id, created, previous, model, space, keeper, began } = row;
  if (!isUsable(id) || (previous !== undefined && !isUsable(previous))) return undefined;
  const items = JSON.stringify({ input: row.input, output: row.output });
  const response = JSON.stringify(row.response);
  return {
    owner,
    id,
    thread,
    created,
    previous: previous ?? null,
    model: model.replaceAll('\0', ''),
    space: space ?? null,
    keeper: keeper ?? null,
    began,
    items: sealed(items, seal, placeOf('items', owner, id)),
    response: sealed(response, seal, placeOf('response', owner, id)),
    bytes: items.length + response.length,
    itemIds: itemIdsOf(row).filter(isUsable),
  };
}

export type OpenedItems = Pick<StoredResponse, 'input' | 'output'>;

/** Undefined: damaged, or sealed with a secret that is not known here. */
export function openItems(
  { owner, id, items }: SharedRow,
  seal: TextSeal,
): OpenedItems | undefined {
  const value = opened(items, seal, placeOf('items', owner, id));
  return value && Array.isArray(value.input) && Array.isArray(value.output)
    ? (value as unknown as OpenedItems)
    : undefined;
}

/** The whole row; undefined as for {@link openItems}. */
export function openRow(row: SharedRow, seal: TextSeal): StoredResponse | undefined {
  const { owner, id, created, previous, model, space, keeper, began } = row;
  const items = openItems(row, seal);
  const response = opened(row.response, seal, placeOf('response', owner, id));
  if (items === undefined || response === undefined) return undefined;
  return {
    id,
    owner,
    created,
    previous: previous ?? undefined,
    model,
    space: space ?? undefined,
    keeper: keeper ?? undefined,
    began,
    response,
    ...items,
  };
}

const placeOf = (part: string, owner: string, id: string): string =>
  `responses:${part}:${owner}:${id}`;

const sealed = (text: string, seal: TextSeal, place: string): Uint8Array =>
  seal.seal(Bun.zstdCompressSync(Buffer.from(text)), place);

function opened(bytes: Uint8Array, seal: TextSeal, place: string): JsonObject | undefined {
  const packed = seal.open(bytes, place);
  if (packed === undefined) return undefined;
  try {
    const value = parseJson(Buffer.from(Bun.zstdDecompressSync(packed)).toString());
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A row as one text without line ends or spaces, for the cache and the spool. */
export function rowText({ items, response, ...rest }: SharedRow): string {
  const parts = [Buffer.from(JSON.stringify(rest)), items, response];
  return parts.map((part) => Buffer.from(part).toString('base64')).join(' ');
}

/** The reverse of {@link rowText}; undefined: it is damaged. */
export function rowOf(text: string): SharedRow | undefined {
  const [head, items, response] = text.split(' ').map((part) => Buffer.from(part, 'base64'));
  const rest = head && tryParse(head.toString());
  if (!isObject(rest) || items === undefined || response === undefined) return undefined;
  return { ...(rest as unknown as Omit<SharedRow, 'items' | 'response'>), items, response };
}
