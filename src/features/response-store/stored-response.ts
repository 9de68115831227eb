/** What is kept of one response, its bounds, and its form on disk. */

import { isObject, type JsonObject, parseJson } from '../../lib/json/json.ts';

/** One link of a chain: what one request brought and what it was answered. */
export interface StoredResponse {
  readonly id: string;
  /** A hash of the gateway key that made it (`ownerOf`); '' where no key was needed. */
  readonly owner: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** The response that this one continued. */
  readonly previous?: string;
  readonly model: string;
  /** The input items of this request alone, never those of the responses before it. */
  readonly input: readonly JsonObject[];
  /** The output items in the form in which a later request may send them again. */
  readonly output: readonly JsonObject[];
  /** The response object as the client got it. */
  readonly response: JsonObject;
  /** A hash of the memory space that it was made with (`spaceMark`): it is erased with the space. */
  readonly space?: string;
  /** The provider that made it and keeps it, too: it knows the response by its id. */
  readonly keeper?: string;
  /** When its request came, as of `instant`: where its space was erased since, it is not kept. Not on disk. */
  readonly began?: number;
}

/** What a chain needs of a link. */
export type ChainLink = Pick<StoredResponse, 'previous' | 'input' | 'output' | 'keeper'>;

/** A row as it is written: JSON columns as text. */
export interface PackedRow {
  readonly id: string;
  readonly owner: string;
  readonly created: number;
  readonly previous: string | null;
  readonly model: string;
  readonly space: string | null;
  readonly keeper: string | null;
  readonly began?: number | undefined;
  readonly input: string;
  readonly output: string;
  readonly response: string;
  /** UTF-16 units of the three texts: what the bound on bytes counts. */
  readonly bytes: number;
  /** Ids of the output items: what a later request may refer to. */
  readonly itemIds: readonly string[];
}

export interface ResponseLimits {
  readonly rows: number;
  readonly bytes: number;
  /** Milliseconds since the conversation was last continued. */
  readonly age: number;
  /** Bounds of what waits in memory, or lives there when there is no usable file. */
  readonly memoryRows: number;
  readonly memoryBytes: number;
}

export const DEFAULT_LIMITS: ResponseLimits = {
  rows: 10_000,
  bytes: 512 * 1024 * 1024,
  age: 30 * 24 * 3_600_000,
  memoryRows: 1_000,
  memoryBytes: 64 * 1024 * 1024,
};

/** How a memory space is named in a row: its own name may be a person's. */
export const spaceMark = (space: string): string =>
  new Bun.CryptoHasher('sha256').update(space).digest('hex');

/** The row with its JSON as text. */
export function pack(row: StoredResponse): PackedRow {
  const input = JSON.stringify(row.input);
  const output = JSON.stringify(row.output);
  const response = JSON.stringify(row.response);
  return {
    id: row.id,
    owner: row.owner,
    created: row.created,
    previous: row.previous ?? null,
    model: row.model,
    space: row.space ?? null,
    keeper: row.keeper ?? null,
    began: row.began,
    input,
    output,
    response,
    bytes: input.length + output.length + response.length,
    itemIds: itemIdsOf(row),
  };
}

/** The reverse of {@link pack}. */
export function unpack(row: Omit<PackedRow, 'bytes' | 'itemIds'>): StoredResponse {
  return {
    id: row.id,
    owner: row.owner,
    created: row.created,
    previous: row.previous ?? undefined,
    model: row.model,
    space: row.space ?? undefined,
    keeper: row.keeper ?? undefined,
    response: parseJson(row.response) as JsonObject,
    ...unpackItems(row),
  };
}

/** The two item lists of a row. */
export function unpackItems(
  row: Pick<PackedRow, 'input' | 'output'>,
): Pick<ChainLink, 'input' | 'output'> {
  return {
    input: parseJson(row.input) as readonly JsonObject[],
    output: parseJson(row.output) as readonly JsonObject[],
  };
}

/**
 * The items that a later request may refer to, by id. A stream that had to be changed halfway has told
 * its first items under the vendor's ids, and named all of them anew at its end: both are known.
 */
export function itemsById({
  output,
  response,
}: Pick<StoredResponse, 'output' | 'response'>): Map<string, JsonObject> {
  const found = new Map<string, JsonObject>();
  const outputItems = Array.isArray(response.output) ? response.output : [];
  for (const item of [...outputItems.filter(isObject), ...output]) {
    if (typeof item.id === 'string' && item.id !== '') found.set(item.id, item);
  }
  return found;
}

export const itemIdsOf = (row: Pick<StoredResponse, 'output' | 'response'>): readonly string[] => [
  ...itemsById(row).keys(),
];
