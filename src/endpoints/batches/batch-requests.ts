/** The requests of a batch: which models they ask for, and the same bytes with the models' names at a provider. */

import { allowedOutput } from '../../conversation/account/allowed-output.ts';
import { checkNames } from '../../conversation/body-names.ts';
import { invalid } from '../../conversation/errors.ts';
import { checkedModel } from '../../gateway/client-request.ts';
import { asBuffer } from '../../lib/bytes/bytes.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type Member,
  topLevel,
  tryParse,
} from '../../lib/json/json.ts';
import { afterSpace, BRACKET_CLOSE, COMMA, valueEnd } from '../../lib/json/scan-values.ts';
import { Rests } from '../../lib/loop/steps.ts';
import type { BatchModel } from './vendor-objects.ts';

/** More than any vendor takes in one batch. */
const MAX_REQUESTS = 1_000_000;
const MAX_MODELS = 100;
const LINE_END = 0x0a;

/** One request, with the place of its model's name in the bytes that hold it. */
export interface FoundRequest {
  readonly model: string;
  readonly modelStart: number;
  readonly modelEnd: number;
  readonly body: Uint8Array;
  readonly maxTokens: number | undefined;
  readonly answers: number;
}

/**
 * @param at the member that holds the body: `params` (Messages) or `body` (OpenAI)
 * @param where it stands, in words
 * @throws GatewayError invalid_request
 */
export function requestIn(line: Uint8Array, at: 'params' | 'body', where: string): FoundRequest {
  const value = tryParse(asBuffer(line).toString());
  const inner = isObject(value) ? value[at] : undefined;
  const place = isObject(inner) ? onlyMember(line, at, where) : undefined;
  if (!isObject(inner) || place === undefined) {
    throw invalid(`${where} is no JSON object with an object in '${at}'.`, at);
  }
  const body = line.subarray(place.valueStart, place.valueEnd);
  const member = onlyMember(body, 'model', where);
  const { model } = inner;
  if (typeof model !== 'string' || model === '' || member === undefined) {
    throw invalid(`${where} has no 'model'.`, 'model');
  }
  return {
    model: checkedModel(model),
    modelStart: place.valueStart + member.valueStart,
    modelEnd: place.valueStart + member.valueEnd,
    body,
    ...allowedBy(inner, isObject(value) ? value.url : undefined),
  };
}

/** Of a member that stands there twice, two parsers could read two values. */
function onlyMember(bytes: Uint8Array, key: string, where: string): Member | undefined {
  const members = topLevel(bytes);
  if (members === undefined) return undefined;
  checkNames(members);
  if (members.repeated !== undefined) {
    throw invalid(`${where} has the member '${members.repeated}' twice.`, members.repeated);
  }
  return members.get(key);
}

/** Their answers are no tokens. */
const WITHOUT_OUTPUT = /\/(?:embeddings|moderations)$/;

function allowedBy(body: JsonObject, url: Json | undefined) {
  const { tokens, choices } = allowedOutput(body);
  const isSilent = typeof url === 'string' && WITHOUT_OUTPUT.test(url);
  return { maxTokens: isSilent ? 0 : tokens, answers: choices };
}

interface Sum {
  requests: number;
  bytes: number;
  /** Of the model's name as the requests spell it. */
  nameBytes: number;
  /** Of all answers together. */
  maxTokens: number | undefined;
  answers: number;
}

/** Adds up what the requests to each model ask for. */
export class RequestSums {
  readonly #models = new Map<string, Sum>();
  #requests = 0;

  /** @throws GatewayError invalid_request for too many requests or models */
  add({ model, modelStart, modelEnd, body, maxTokens: each, answers }: FoundRequest): void {
    const maxTokens = each === undefined ? undefined : each * answers;
    const nameBytes = modelEnd - modelStart;
    if (++this.#requests > MAX_REQUESTS) {
      throw invalid(`The batch has more than ${MAX_REQUESTS} requests.`);
    }
    const known = this.#models.get(model);
    if (known === undefined) {
      if (this.#models.size >= MAX_MODELS) {
        throw invalid(`The batch asks for more than ${MAX_MODELS} models.`, 'model');
      }
      this.#models.set(model, { requests: 1, bytes: body.length, nameBytes, maxTokens, answers });
      return;
    }
    known.requests++;
    known.bytes += body.length;
    known.nameBytes += nameBytes;
    known.answers += answers;
    known.maxTokens = known.maxTokens === undefined ? undefined : add(known.maxTokens, maxTokens);
  }

  get asked(): readonly string[] {
    return [...this.#models.keys()];
  }

  /** Bytes that the requests have more with these names. */
  growth(nameOf: (asked: string) => string): number {
    let bytes = 0;
    for (const [asked, { requests, nameBytes }] of this.#models) {
      const name = nameOf(asked);
      if (name !== asked) bytes += requests * Buffer.byteLength(JSON.stringify(name)) - nameBytes;
    }
    return bytes;
  }

  /** @param nameOf the model at the provider */
  models(nameOf: (asked: string) => string): readonly BatchModel[] {
    return [...this.#models].map(([asked, { requests, bytes, maxTokens, answers }]) => ({
      asked,
      model: nameOf(asked),
      requests,
      bytes,
      ...(maxTokens !== undefined && { maxTokens: Math.ceil(maxTokens / answers) }),
      answers,
    }));
  }
}

const add = (a: number, b: number | undefined) => (b === undefined ? undefined : a + b);

/** Sees a request, and names its model at the provider; undefined: as it is. */
type See = (request: FoundRequest) => string | undefined;

/**
 * The lines of a file of requests, with other names of models where `see` gives one.
 * @param most bytes of a line
 * @throws GatewayError invalid_request that names the line
 */
export async function* requestLines(
  file: AsyncIterable<Uint8Array>,
  most: number,
  see: See,
): AsyncGenerator<Uint8Array> {
  const rests = new Rests();
  let number = 0;
  for await (const line of linesOf(file, most)) {
    number++;
    await rests.rest();
    if (afterSpace(line, 0) >= line.length) {
      yield line;
      continue;
    }
    const request = requestIn(line, 'body', `Line ${number} of the file`);
    yield* renamed(line, request, see(request));
  }
  if (number === 0) throw invalid('The file holds no requests.', 'file');
}

function* renamed(
  bytes: Uint8Array,
  { model, modelStart, modelEnd }: FoundRequest,
  name: string | undefined,
): Generator<Uint8Array> {
  if (name === undefined || name === model) {
    yield bytes;
    return;
  }
  yield bytes.subarray(0, modelStart);
  yield Buffer.from(JSON.stringify(name));
  yield bytes.subarray(modelEnd);
}

/** Lines with their ends. @throws GatewayError invalid_request for one of more than `most` bytes */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  most: number,
): AsyncGenerator<Buffer> {
  let pieces: Uint8Array[] = [];
  let size = 0;
  let number = 1;
  for await (const chunk of chunks) {
    const bytes = asBuffer(chunk);
    let from = 0;
    for (;;) {
      const end = bytes.indexOf(LINE_END, from);
      const piece = bytes.subarray(from, end < 0 ? bytes.length : end + 1);
      size += piece.length;
      if (size > most) {
        throw invalid(`Line ${number} has more than ${most} bytes (limits.body_bytes).`, 'file');
      }
      pieces.push(piece);
      if (end < 0) break;
      yield pieces.length === 1 ? bytes.subarray(from, end + 1) : Buffer.concat(pieces);
      pieces = [];
      size = 0;
      number++;
      from = end + 1;
    }
  }
  if (size > 0) yield Buffer.concat(pieces);
}

/**
 * The body of a batch of Messages with other names of models where `see` gives one; the same pieces otherwise.
 * @throws GatewayError invalid_request
 */
export async function messagesBatch(bytes: Buffer, see: See): Promise<Uint8Array> {
  const list = onlyMember(bytes, 'requests', 'The body');
  let at = list === undefined ? -1 : afterSpace(bytes, list.valueStart + 1);
  if (list === undefined || bytes[list.valueStart] !== 0x5b || bytes[at] === BRACKET_CLOSE) {
    throw invalid("'requests' must be a list of at least one request.", 'requests');
  }
  const rests = new Rests();
  const out: Uint8Array[] = [];
  let written = 0;
  for (let index = 0; ; index++) {
    const end = valueEnd(bytes, at);
    if (end < 0) throw invalid('The request body is not valid JSON.');
    const item = bytes.subarray(at, end);
    const request = requestIn(item, 'params', `'requests[${index}]'`);
    const name = see(request);
    if (name !== undefined && name !== request.model) {
      out.push(bytes.subarray(written, at + request.modelStart), Buffer.from(JSON.stringify(name)));
      written = at + request.modelEnd;
    }
    await rests.rest();
    at = afterSpace(bytes, end);
    if (bytes[at] === BRACKET_CLOSE) break;
    if (bytes[at] !== COMMA) throw invalid('The request body is not valid JSON.');
    at = afterSpace(bytes, at + 1);
  }
  return written === 0 ? bytes : Buffer.concat([...out, bytes.subarray(written)]);
}
