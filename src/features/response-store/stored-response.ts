/** A stored response: its fields, its limits, and its row, whose texts are compressed and sealed. */

import type { CountedBefore } from '../../conversation/account/payer.ts';
import { isObject, type JsonObject, parseJson, tryParse } from '../../lib/json/json.ts';
import { NewestMap } from '../../lib/loop/newest-map.ts';
import { secretBase36 } from '../../lib/text/ids.ts';
import { AS_IT_IS, type TextSeal } from '../../state/text-seal.ts';

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
  /** When its request came, as of `instant`: it is not stored where its space was erased later. */
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

/** A row of the tables. */
export interface ResponseRow {
  readonly owner: string;
  readonly id: string;
  /** Its conversation, whose rows are removed together. */
  readonly thread: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly previous: string | null;
  readonly model: string;
  readonly space: string | null;
  readonly keeper: string | null;
  /** The time of its request, in milliseconds since 1970 by the clock of the side that holds the row. */
  readonly began: number;
  /** UTF-16 units of the texts, which the limit on bytes counts. */
  readonly bytes: number;
  /** Ids of the output items that a later request may refer to. */
  readonly itemIds: readonly string[];
  /** Sealed: the input and output items. */
  readonly items: Uint8Array;
  /** Sealed: the response object. Empty where only the items were read. */
  readonly response: Uint8Array;
}

export type RowKey = Pick<ResponseRow, 'owner' | 'id'>;

export const keyOf = ({ owner, id }: RowKey): string => `${owner}\n${id}`;

export interface ResponseLimits {
  readonly rows: number;
  readonly bytes: number;
  /** Milliseconds since the conversation was last continued. */
  readonly age: number;
  /** Limits of the rows in memory: those that are not in the database yet, or all where there is none. */
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

/** A longer id fits into no index of Postgres. */
const MAX_ID = 512;

/** Can Postgres hold it as an id? */
export const isUsable = (id: string): boolean => id.length <= MAX_ID && !id.includes('\0');

export type OpenedResponse = StoredResponse & { readonly began: number };

/** A response that was put. It becomes a row when somebody needs its bytes: not on the way of a request. */
export class QueuedResponse {
  readonly owner: string;
  readonly id: string;
  readonly previous: string | null;
  readonly space: string | null;
  readonly keeper: string | null;
  readonly began: number;
  readonly itemIds: readonly string[];
  #given: OpenedResponse | undefined;
  #row: ResponseRow | undefined;

  constructor(
    stored: OpenedResponse,
    readonly thread: string,
    private readonly seal: TextSeal,
  ) {
    this.#given = stored;
    this.owner = stored.owner;
    this.id = stored.id;
    this.previous = stored.previous ?? null;
    this.space = stored.space ?? null;
    this.keeper = stored.keeper ?? null;
    this.began = stored.began;
    this.itemIds = [...itemsById(stored).keys()];
  }

  /** As it was given; undefined: it is a row now. */
  get given(): OpenedResponse | undefined {
    return this.#given;
  }

  get row(): ResponseRow {
    if (this.#given !== undefined) this.#row = this.#packed(this.#given);
    this.#given = undefined;
    return this.#row!;
  }

  /** 0 until it is a row. */
  get bytes(): number {
    return this.#row?.bytes ?? 0;
  }

  #packed(stored: OpenedResponse): ResponseRow {
    const { owner, id, thread, previous, space, keeper, began, itemIds } = this;
    const items = JSON.stringify({ input: stored.input, output: stored.output });
    const response = JSON.stringify(stored.response);
    const head = { owner, id, thread, previous, space, keeper, began, itemIds };
    return {
      ...head,
      created: stored.created,
      model: stored.model.replaceAll('\0', ''),
      bytes: items.length + response.length,
      items: packText(items, this.seal, placeOf('items', this)),
      response: packText(response, this.seal, placeOf('response', this)),
    };
  }
}

/** A row that was read, or a response that is still to be written. */
export type FoundResponse = ResponseRow | QueuedResponse;

/** The items of a response; undefined: damaged, or sealed with a secret that is not known here. */
export function openItems(
  found: FoundResponse,
  seal: TextSeal,
): Pick<StoredResponse, 'input' | 'output'> | undefined {
  if (found instanceof QueuedResponse) return found.given ?? openItems(found.row, seal);
  const value = openText(found.items, seal, placeOf('items', found));
  return value && Array.isArray(value.input) && Array.isArray(value.output)
    ? (value as unknown as Pick<StoredResponse, 'input' | 'output'>)
    : undefined;
}

/** The whole response; undefined as for {@link openItems}. */
export function openRow(found: FoundResponse, seal: TextSeal): OpenedResponse | undefined {
  if (found instanceof QueuedResponse) return found.given ?? openRow(found.row, seal);
  const { owner, id, created, previous, model, space, keeper, began } = found;
  const items = openItems(found, seal);
  const response = openText(found.response, seal, placeOf('response', found));
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

/** The row with its texts under another seal; undefined: they cannot be opened. */
export function resealed(row: ResponseRow, from: TextSeal, to: TextSeal): ResponseRow | undefined {
  const again = (part: 'items' | 'response') => {
    const text = unpackText(row[part], from, placeOf(part, row));
    return text && packText(text, to, placeOf(part, row));
  };
  const [items, response] = [again('items'), again('response')];
  return items && response && { ...row, items, response };
}

const placeOf = (part: 'items' | 'response', { owner, id }: RowKey): string =>
  `responses:${part}:${owner}:${id}`;

/** In the file of a machine, texts are not compressed, either. */
export const packText = (text: string | Uint8Array, seal = AS_IT_IS, place = ''): Uint8Array =>
  seal.seal(seal === AS_IT_IS ? Buffer.from(text) : Bun.zstdCompressSync(Buffer.from(text)), place);

/** Undefined: it cannot be opened. @throws Error: it is damaged */
function unpackText(bytes: Uint8Array, seal: TextSeal, place: string): Uint8Array | undefined {
  const packed = seal.open(bytes, place);
  const isText = packed?.[0] === 0x7b;
  return packed === undefined || isText ? packed : Bun.zstdDecompressSync(packed);
}

function openText(bytes: Uint8Array, seal: TextSeal, place: string): JsonObject | undefined {
  try {
    const text = unpackText(bytes, seal, place);
    const value = text && parseJson(Buffer.from(text).toString());
    return value !== undefined && isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A row as one text without line ends or spaces, for the cache. */
export function rowText({ items, response, ...rest }: ResponseRow): string {
  const parts = [Buffer.from(JSON.stringify(rest)), items, response];
  return parts.map((part) => Buffer.from(part).toString('base64')).join(' ');
}

/** The reverse of {@link rowText}; undefined: it is damaged. */
export function rowOf(text: string): ResponseRow | undefined {
  const [head, items, response] = text.split(' ').map((part) => Buffer.from(part, 'base64'));
  const rest = head && tryParse(head.toString());
  if (!isObject(rest) || items === undefined || response === undefined) return undefined;
  return { ...(rest as unknown as Omit<ResponseRow, 'items' | 'response'>), items, response };
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

const MAX_THREADS = 10_000;

export class ResponseThreads {
  /** By the key of a response. */
  readonly #threads = new NewestMap<string, string>(MAX_THREADS);

  learn({ owner, id, thread }: FoundResponse): void {
    this.#threads.set(keyOf({ owner, id }), thread);
  }

  /** A new conversation where it is not known which one the response continues. */
  of({ owner, id, previous }: Pick<StoredResponse, 'owner' | 'id' | 'previous'>): string {
    const known = this.#threads.get(keyOf({ owner, id }));
    if (known !== undefined || previous === undefined) return known ?? secretBase36(20);
    return this.#threads.get(keyOf({ owner, id: previous })) ?? secretBase36(20);
  }
}
