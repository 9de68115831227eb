/** A stored response: its fields, its limits, and its row in the database. */

import type { CountedBefore } from '../../conversation/account/payer.ts';
import { isObject, type JsonObject, parseJson } from '../../lib/json/json.ts';

/** One exchange of a conversation: the input of one request and its response. */
export interface StoredResponse {
  readonly id: string;
  /** A hash of the gateway key that made it (`ownerOf`); '' without auth. */
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
  /** The hash of its memory space (`nameHash`): it is erased with the space. */
  readonly space?: string;
  /** The provider that made it and also stores it under its id. */
  readonly keeper?: string;
  /** When its request came, as of `instant`: it is not stored where its space was erased later. Not on disk. */
  readonly began?: number;
}

/** A job's answer has been counted as far as this, and is settled when the vendor has finished it. */
export interface Due extends CountedBefore {
  /** As it was asked for. */
  readonly asked: string;
  /** As the vendor names it in requests. */
  readonly model: string;
}

/** Beside the fields of a stored response; clients never see it. */
const DUE = 'hopgate_due';

export const dueOf = ({ response }: Pick<StoredResponse, 'response'>): Due | undefined =>
  isObject(response[DUE]) ? (response[DUE] as unknown as Due) : undefined;

export const withDue = (response: JsonObject, due: Due | undefined): JsonObject =>
  due === undefined ? response : { ...response, [DUE]: due as unknown as JsonObject };

/** As the client got it. */
export function withoutDue(response: JsonObject): JsonObject {
  if (response[DUE] === undefined) return response;
  const { [DUE]: _, ...rest } = response;
  return rest;
}

/** The fields that a chain needs. */
export type ChainLink = Pick<StoredResponse, 'previous' | 'input' | 'output' | 'keeper'>;

/** A row of the database, its JSON columns as text. */
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
  /** UTF-16 units of the three texts, which the limit on bytes counts. */
  readonly bytes: number;
  /** Ids of the output items, which later requests may refer to. */
  readonly itemIds: readonly string[];
}

export interface ResponseLimits {
  readonly rows: number;
  readonly bytes: number;
  /** Milliseconds since the conversation was last continued. */
  readonly age: number;
  /** Limits on the rows in memory: queued ones, or all rows without a usable file. */
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
 * The items that a later request may refer to, by id. In a stream that had to be changed halfway, the
 * first items had the vendor's ids, and the final response has new ones: both are known.
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
