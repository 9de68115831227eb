/** The JSON body of an endpoint's request: its model is read, its bytes stay. */

import { checkNames } from '../conversation/body-names.ts';
import { invalid } from '../conversation/errors.ts';
import { checkedModel, decodeJson, notAnObject } from '../gateway/client-request.ts';
import { splice } from '../lib/bytes/bytes.ts';
import { isObject, type Member, type Members, topLevel } from '../lib/json/json.ts';
import { topLevelInSlices } from '../lib/json/large-json.ts';
import { withoutMedia } from './media.ts';
import type { EndpointRequest } from './types.ts';

/** A body up to this size is parsed whole, which shows every mistake in it. */
const PARSED_BYTES = 2 * 1024 * 1024;

/** @throws GatewayError invalid_request that names the field: no JSON, no object, no model */
export async function jsonRequest(bytes: Uint8Array): Promise<EndpointRequest> {
  let members: Members | 'blank' | undefined;
  if (bytes.length <= PARSED_BYTES) {
    if (!isObject(decodeJson(bytes))) throw notAnObject(bytes);
    members = topLevel(bytes);
  } else members = await topLevelInSlices(bytes);
  if (members === 'blank') {
    throw invalid('The request body holds more than a megabyte of white space in one place.');
  }
  if (members === undefined) throw notAnObject(bytes);
  checkNames(members);
  const valueAt = (key: string) => {
    const member = members.get(key);
    return member && decodeJson(bytes.subarray(member.valueStart, member.valueEnd));
  };
  const model = valueAt('model');
  if (typeof model !== 'string' || model === '') {
    throw invalid("Missing or invalid required parameter: 'model'.", 'model');
  }
  const stream = valueAt('stream') === true || valueAt('stream_format') === 'sse';
  const countAt = (key: string) => {
    const value = valueAt(key);
    return typeof value === 'number' && value >= 0 ? value : undefined;
  };
  const choices = Math.max(1, countAt('n') ?? 1, countAt('best_of') ?? 1);
  const allowed = { tokens: countAt('max_tokens'), choices };
  return new JsonRequest(bytes, checkedModel(model), stream, allowed, members.get('model')!);
}

class JsonRequest implements EndpointRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly allowed: NonNullable<EndpointRequest['allowed']>;
  readonly contentType = 'application/json';
  readonly spent = false;
  readonly #bytes: Uint8Array;
  readonly #member: Member;

  constructor(
    bytes: Uint8Array,
    model: string,
    stream: boolean,
    allowed: JsonRequest['allowed'],
    member: Member,
  ) {
    this.#bytes = bytes;
    this.model = model;
    this.stream = stream;
    this.allowed = allowed;
    this.#member = member;
  }

  get bytes(): number {
    return this.#bytes.length;
  }

  bodyFor({ model }: { readonly model: string }): Uint8Array {
    if (model === this.model) return this.#bytes;
    const { valueStart, valueEnd } = this.#member;
    return splice(this.#bytes, valueStart, valueEnd, JSON.stringify(model));
  }

  recorded(model: string): Uint8Array {
    return withoutMedia(this.bodyFor({ model }));
  }

  close(): void {}
}
