/** Stored responses: continue, record, retrieve, list and delete them, each for its owner only. */

import { GatewayError, invalid } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { sha256Hex } from '../../lib/text/sha256.ts';
import { nameHash } from '../../state/erasures.ts';
import { type Chain, isVendorReference, type ResponseReads } from './response-reads.ts';
import type { ResponseStore } from './response-store.ts';
import { type ItemPageQuery, pageOf } from './response-views.ts';
import { type Due, dueOf, type StoredResponse, withDue, withoutDue } from './stored-response.ts';

export { isOwnId, isVendorReference, type ResponseReads } from './response-reads.ts';
export { ResponseStore, type ResponseStoreOptions } from './response-store.ts';
export type { ItemPageQuery } from './response-views.ts';
export { RESPONSES } from './schema.ts';
export {
  type Due,
  type ResponseLimits,
  type StoredResponse,
  withDue,
} from './stored-response.ts';

/** The owner of a gateway key's responses: a hash, so that the store contains no key; '' without auth. */
export function ownerOf(key: string): string {
  return key === '' ? '' : sha256Hex(key).slice(0, 32);
}

/** OpenAI's answer to a `previous_response_id` it does not know: a 400. */
export function previousNotFound(id: string): GatewayError {
  return new GatewayError('invalid_request', `Previous response with id '${id}' not found.`, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
    retryable: false,
  });
}

/** OpenAI's answer to an id in a path, and to a `conversation` or an item, that it does not know: a 404. */
const notFound = (what: string, id: string, param: string): GatewayError =>
  new GatewayError('not_found', `${what} with id '${id}' not found.`, { param, retryable: false });

export const conversationNotFound = (id: string): GatewayError =>
  notFound('Conversation', id, 'conversation');

export const responseNotFound = (id: string): GatewayError => notFound('Response', id, 'id');

/**
 * The items before this request's own input: the conversation up to the response that it continues,
 * oldest first. Undefined where it continues nothing. Earlier instructions are not included, since OpenAI
 * does not carry them over either.
 * @param owner as of {@link ownerOf}; another owner's responses do not exist
 * @throws GatewayError invalid_request (400, previous_response_not_found) naming the missing link
 */
export async function earlierItems(
  body: JsonObject,
  store: ResponseReads,
  owner: string,
): Promise<readonly JsonObject[] | undefined> {
  const id = body.previous_response_id;
  if (id === undefined || id === null) return undefined;
  if (typeof id !== 'string') {
    throw invalid(
      `Invalid type for 'previous_response_id': expected a string.`,
      'previous_response_id',
    );
  }
  return chainItems(await store.chain(id, owner));
}

/**
 * The items of a chain for a provider.
 * @param provider the target's provider, where it stores responses itself; left out: it does not
 * @throws GatewayError invalid_request (400, previous_response_not_found) naming the missing link
 */
export function chainItems(chain: Chain, provider?: string): readonly JsonObject[] {
  if ('missing' in chain) throw previousNotFound(chain.missing);
  return provider === undefined ? chain.items : chain.itemsFor(provider);
}

const isReference = (item: Json): item is JsonObject =>
  isObject(item) &&
  typeof item.id === 'string' &&
  (item.type === 'item_reference' || item.type === undefined || item.type === null) &&
  item.role === undefined;

/** The target of a body that refers to items. */
export interface ReferenceContext {
  /** The target's provider, where it stores responses itself. */
  readonly keeper?: string;
  /** The provider may know items that the store does not: such references are sent unchanged. */
  readonly mayKnow?: boolean;
  /** Others share the vendor's account, so items that only refer to the vendor's content must be known too. */
  readonly guarded?: boolean;
}

/** The ids of items that an input refers to without their content, by index. */
function namedItems(input: Json | undefined, guarded: boolean): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  if (!Array.isArray(input)) return found;
  input.forEach((item: Json, i) => {
    if (isReference(item) || (guarded && isObject(item) && isVendorReference(item))) {
      found.set(i, String((item as JsonObject).id));
    }
  });
  return found;
}

/**
 * The body with every `item_reference` of its input replaced by the output item that it names. Clients
 * that rely on stored responses (the AI SDK does by default) send references instead of items. An item
 * that the target's provider stores itself stays a reference. The same body where nothing is replaced.
 * @throws GatewayError not_found naming the item that is not known
 */
export function resolveReferences(
  body: JsonObject,
  store: ResponseReads,
  owner: string,
  { keeper, mayKnow = false, guarded = false }: ReferenceContext = {},
): JsonObject {
  const references = namedItems(body.input, guarded);
  if (references.size === 0) return body;
  const known = store.items(new Set(references.values()), owner);
  let replaced = false;
  const input = (body.input as readonly Json[]).flatMap((item, i) => {
    const id = references.get(i);
    if (id === undefined) return [item];
    const found = known.get(id);
    if (found === undefined) {
      if (mayKnow) return [item];
      // Only the vendor that made this reasoning can read it.
      if (isObject(item) && item.type === 'reasoning') {
        replaced = true;
        return [];
      }
      throw notFound('Item', id, `input[${i}]`);
    }
    if (!isReference(item) || (keeper !== undefined && found.keeper === keeper)) return [item];
    replaced = true;
    return [found.item];
  });
  return replaced ? { ...body, input } : body;
}

/** The ids of the items that {@link resolveReferences} looks up for this body. */
export const referredItems = (
  { input }: JsonObject,
  { guarded = false }: ReferenceContext = {},
): readonly string[] => [...new Set(namedItems(input, guarded).values())];

/** A finished exchange to store. The two functions come from the Responses codec. */
export interface FinishedExchange {
  /** The request as the client sent it, before {@link earlierItems}. */
  readonly body: JsonObject;
  /** The response object as the client got it. */
  readonly response: JsonObject;
  readonly owner: string;
  /** The memory space that the conversation used. */
  readonly space?: string;
  /** The provider that made the response and also stores it. */
  readonly keeper?: string;
  /** When its request came, as of `instant`. */
  readonly began?: number;
  /** The count of a job so far; left out: nothing is counted. */
  readonly due?: Due | undefined;
  /** The request's own input as a list of items (a string is one user message). */
  readonly inputItems: (body: JsonObject) => readonly JsonObject[];
  /** The response's output items as a later request may send them. */
  readonly outputItems: (response: JsonObject) => readonly JsonObject[];
}

/**
 * Stores the exchange unless the client said `store: false`, the response has no id, or it is not
 * complete (one that a vendor stores is taken anyway, and updated until it is complete). The write itself
 * comes later.
 * @returns whether it is stored
 */
export function record(store: Pick<ResponseStore, 'put'>, exchange: FinishedExchange): boolean {
  const { body, response, owner, keeper } = exchange;
  if (body.store === false || typeof response.id !== 'string' || response.id === '') return false;
  if (keeper === undefined && isUnderWay(response)) return false;
  const previous = body.previous_response_id;
  const created = response.created_at;
  store.put({
    id: response.id,
    owner,
    created: typeof created === 'number' ? Math.floor(created) : Math.floor(Date.now() / 1000),
    previous: typeof previous === 'string' ? previous : undefined,
    model: typeof response.model === 'string' ? response.model : '',
    input: exchange.inputItems(body),
    output: exchange.outputItems(response),
    response: isUnderWay(response) ? withDue(response, exchange.due) : response,
    ...(exchange.space !== undefined && { space: nameHash(exchange.space) }),
    ...(keeper !== undefined && { keeper }),
    ...(exchange.began !== undefined && { began: exchange.began }),
  });
  return true;
}

/** Is this the response of a background job that is still running? */
export const isUnderWay = ({ status }: JsonObject): boolean =>
  status === 'in_progress' || status === 'queued';

/** A vendor's job whose answer is not known here, or not paid for. */
export const isJob = (row: StoredResponse): boolean =>
  isUnderWay(row.response) || dueOf(row) !== undefined;

/** The result of the change of a finished job. */
export interface FinishedJob {
  /** As it was before. */
  readonly row: StoredResponse;
  /** Its count so far. */
  readonly due: Due | undefined;
}

/**
 * A job's answer takes the place of what was known of it. Of all that ask, in any process, one gets the job: it is that
 * one's to settle. Without usage in the answer, later ones may have some.
 * @throws GatewayError 503: it is not certain who was first
 */
export async function finishJob(
  store: Pick<ResponseStore, 'change'>,
  { id, owner }: Pick<StoredResponse, 'id' | 'owner'>,
  answer: { readonly response: JsonObject; readonly reportsUsage: boolean },
  outputItems: FinishedExchange['outputItems'],
): Promise<FinishedJob | undefined> {
  const { response, reportsUsage } = answer;
  let found: FinishedJob | undefined;
  const changed = await store.change(id, owner, (row) => {
    found = undefined;
    if (!isJob(row) || (!reportsUsage && !isUnderWay(row.response))) return undefined;
    const due = dueOf(row);
    found = { row, due };
    const next = reportsUsage ? response : withDue(response, due);
    return { ...row, output: outputItems(response), response: next };
  });
  return changed && reportsUsage ? found : undefined;
}

/** `GET /v1/responses/{id}`. @throws GatewayError not_found */
export function retrieve(store: ResponseReads, id: string, owner: string): JsonObject {
  const row = store.get(id, owner);
  if (!row) throw responseNotFound(id);
  return withoutDue(row.response);
}

/** `DELETE /v1/responses/{id}`. Later links of its chain can no longer be continued. @throws GatewayError not_found */
export async function remove(
  store: Pick<ResponseStore, 'delete'>,
  id: string,
  owner: string,
): Promise<JsonObject> {
  if (!(await store.delete(id, owner))) throw responseNotFound(id);
  return { id, object: 'response', deleted: true };
}

/**
 * `GET /v1/responses/{id}/input_items`: a page of everything that the model got for this response,
 * including the items of the chain before it.
 * @throws GatewayError not_found, or invalid_request for the query
 */
export async function listInputItems(
  store: ResponseReads,
  id: string,
  owner: string,
  query: ItemPageQuery = {},
): Promise<JsonObject> {
  const row = store.get(id, owner);
  if (!row) throw responseNotFound(id);
  if (row.previous === undefined) return pageOf(row.input, id, query);
  const before = await store.chain(row.previous, owner);
  // Where an earlier link is gone, only the response's own input is left.
  return pageOf('missing' in before ? row.input : [...before.items, ...row.input], id, query);
}
