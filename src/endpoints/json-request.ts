/** The JSON body of an endpoint's request: its model is read, its bytes stay. */

import {
  ALLOWING,
  type AllowedOutput,
  allowedOutput,
} from '../conversation/account/allowed-output.ts';
import { checkNames } from '../conversation/body-names.ts';
import { invalid } from '../conversation/errors.ts';
import { checkedModel, decodeJson, notAnObject } from '../gateway/client-request.ts';
import { asBuffer, splice } from '../lib/bytes/bytes.ts';
import { withFirstMembers } from '../lib/json/body-members.ts';
import { isObject, type Json, type Member, type Members, topLevel } from '../lib/json/json.ts';
import { topLevelInSlices } from '../lib/json/large-json.ts';
import {
  afterSpace,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  COMMA,
  stringEnd,
} from '../lib/json/scan-values.ts';
import { QUOTE } from '../lib/json/string-ends.ts';
import { withoutMedia } from './media.ts';
import type { EndpointRequest } from './types.ts';

/** A body up to this size is parsed whole, which shows every mistake in it. */
const PARSED_BYTES = 2 * 1024 * 1024;

/**
 * @param defaultModel of a request that names none; left out: it must name one
 * @throws GatewayError invalid_request that names the field: no JSON, no object, no model
 */
export async function jsonRequest(
  bytes: Uint8Array,
  defaultModel?: string,
): Promise<EndpointRequest> {
  let members: Members | 'blank' | undefined;
  let parsed: Json | undefined;
  if (bytes.length <= PARSED_BYTES) {
    parsed = decodeJson(bytes);
    if (!isObject(parsed)) throw notAnObject(bytes);
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
  const named = valueAt('model') ?? undefined;
  const model = named ?? defaultModel;
  if (typeof model !== 'string' || model === '') {
    throw invalid("Missing or invalid required parameter: 'model'.", 'model');
  }
  const stream = valueAt('stream') === true || valueAt('stream_format') === 'sse';
  const allowed = isObject(parsed)
    ? allowedOutput(parsed)
    : allowedOutput(
        Object.fromEntries(ALLOWING.map((name) => [name, valueAt(name)])),
        countItems(asBuffer(bytes), members.get('prompt')?.valueStart),
      );
  // Elsewhere than with floats the letters stand for other numbers.
  const wantsBase64 =
    valueAt('encoding_format') === 'base64' && (valueAt('output_dtype') ?? 'float') === 'float';
  const isDefaultModel = named === undefined;
  const known = { model: checkedModel(model), isDefaultModel, stream, allowed, wantsBase64 };
  return new JsonRequest(bytes, known, members.get('model'), members.get('input'));
}

/** More than any vendor takes at once. */
const MAX_PROMPTS = 10_000;

/** The texts, or lists of numbers, of the list that begins at `start`; 1 where there is none. */
function countItems(bytes: Buffer, start = -1): number {
  if (bytes[start] !== BRACKET_OPEN) return 1;
  let count = 0;
  let at = afterSpace(bytes, start + 1);
  for (; count < MAX_PROMPTS; at = afterSpace(bytes, at + 1)) {
    if (bytes[at] === BRACKET_OPEN) at = bytes.indexOf(BRACKET_CLOSE, at) + 1;
    else if (bytes[at] === QUOTE) at = stringEnd(bytes, at);
    else break;
    count++;
    if (at <= 0) break;
    at = afterSpace(bytes, at);
    if (bytes[at] !== COMMA) break;
  }
  return Math.max(1, count);
}

type KnownParts = Required<
  Pick<EndpointRequest, 'model' | 'isDefaultModel' | 'stream' | 'allowed' | 'wantsBase64'>
>;

class JsonRequest implements EndpointRequest {
  readonly model: string;
  readonly isDefaultModel: boolean;
  readonly stream: boolean;
  readonly allowed: AllowedOutput;
  readonly wantsBase64: boolean;
  readonly contentType = 'application/json';
  readonly spent = false;
  readonly #bytes: Uint8Array;

  constructor(
    bytes: Uint8Array,
    { model, isDefaultModel, stream, allowed, wantsBase64 }: KnownParts,

    /** Where the model's name stands; undefined: nowhere. */
    private readonly member: Member | undefined,
    private readonly input: Member | undefined,
  ) {
    this.#bytes = bytes;
    this.model = model;
    this.isDefaultModel = isDefaultModel;
    this.stream = stream;
    this.allowed = allowed;
    this.wantsBase64 = wantsBase64;
  }

  get bytes(): number {
    return this.#bytes.length;
  }

  get characters(): number | undefined {
    if (this.input === undefined) return undefined;
    const value = decodeJson(this.#bytes.subarray(this.input.valueStart, this.input.valueEnd));
    return typeof value === 'string' ? value.length : undefined;
  }

  bodyFor({ model }: { readonly model: string }): Uint8Array {
    if (model === this.model && !this.isDefaultModel) return this.#bytes;
    const name = JSON.stringify(model);
    if (this.member === undefined) return withFirstMembers(this.#bytes, `"model":${name}`);
    const { valueStart, valueEnd } = this.member;
    return splice(this.#bytes, valueStart, valueEnd, name);
  }

  recorded(model: string): Uint8Array {
    return withoutMedia(this.bodyFor({ model }));
  }

  close(): void {}
}
