/** What is to be sent again: a request of a sample, with what is known of how it was sent and answered. */

import { GatewayError, invalid } from '../../conversation/errors.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { isObject, type JsonObject, splice, topLevel, tryParse } from '../../lib/json/json.ts';
import type { ExportedSample, SampleMeta, SampleStore } from '../sample.ts';
import type { CompleteAnswer } from './outcome.ts';

export interface ReplaySource {
  /** The sample's id, or the file's name. */
  readonly name: string;
  /** How the body speaks. */
  readonly protocol: ProtocolName;
  readonly body: Uint8Array;
  readonly headers: Headers;
  readonly search: string;
  /** It went to a vendor in this form: it goes to one as it is. */
  readonly direct: boolean;
  /** `provider/model` it went to. */
  readonly target: string | undefined;
  /** What was answered then. */
  readonly answer: CompleteAnswer | undefined;
  /** How long that took, in milliseconds. */
  readonly totalMs?: number;
}

// What a client says of itself and of the protocol; nothing that is a credential or of a connection.
const CARRIED =
  /^(anthropic-(version|beta)|openai-beta|user-agent|x-app|x-claude-code-|session[-_]id|originator)/;

/** The headers of a request that are sent again with it; what was masked is left out. */
export function carriedHeaders(headers: Readonly<Record<string, string>> = {}): Headers {
  const carried = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (CARRIED.test(name) && !value.includes('**')) carried.set(name, value);
  }
  return carried;
}

/** @throws GatewayError not_found when there is no such sample, or several */
export function requireSample(book: SampleStore, id: string): SampleMeta {
  const meta = book.find(id);
  if (meta !== undefined) return meta;
  const fits = book.matching(id, CANDIDATES + 1);
  if (fits.length === 0) {
    throw new GatewayError('not_found', `There is no sample "${id}" in ${book.root}.`);
  }
  const more = fits.length > CANDIDATES ? ', and more' : '';
  const named = fits.slice(0, CANDIDATES).map((row) => row.id);
  throw new GatewayError(
    'not_found',
    `"${id}" fits more than one sample in ${book.root}: ${named.join(', ')}${more}.`,
  );
}

/** Ids that are named where a part of an id fits several. */
const CANDIDATES = 5;

/** Stages that can be sent again. */
export const sendableStages = (meta: SampleMeta): readonly string[] =>
  meta.edges.map(({ stage }) => stage).filter((stage) => stage.endsWith('request'));

/** A request of an exported sample. @throws GatewayError not_found */
export function fromExported({ meta, files }: ExportedSample, stage?: string): ReplaySource {
  const read = (_: SampleMeta, wanted: string) => {
    const file = files.find((one) => one.stage === wanted);
    if (file === undefined) return undefined;
    return Buffer.from(file.text ?? file.base64 ?? '', file.text === undefined ? 'base64' : 'utf8');
  };
  return fromSample({ read }, meta, stage);
}

/**
 * The request of a sample: what the client sent, unless another edge is named.
 * @throws GatewayError not_found when there is no such request
 */
export function fromSample(
  book: Pick<SampleStore, 'read'>,
  meta: SampleMeta,
  stage = 'client-request',
): ReplaySource {
  const body = book.read(meta, stage);
  if (body === undefined || !stage.endsWith('request')) {
    const names = sendableStages(meta).join(', ');
    throw new GatewayError('not_found', `${meta.id} has no request "${stage}". It has: ${names}.`);
  }
  const edge = meta.edges.find((one) => one.stage === stage);
  const direct = stage !== 'client-request';
  return {
    name: meta.id,
    protocol: direct ? (edge?.protocol ?? meta.provider_protocol ?? meta.entry) : meta.entry,
    body,
    headers: carriedHeaders(edge?.headers),
    search: direct || meta.search?.includes('**') === true ? '' : (meta.search ?? ''),
    direct,
    target: edge?.target ?? meta.target,
    answer: answerTo(book, meta, stage),
    ...(direct ? {} : { totalMs: meta.total_ms }),
  };
}

/** What was answered to the request of a stage; undefined when nothing was, or not all of it is there yet. */
function answerTo(
  book: Pick<SampleStore, 'read'>,
  meta: SampleMeta,
  stage: string,
): CompleteAnswer | undefined {
  if (meta.state === 'open') return undefined;
  const answers =
    stage === 'client-request'
      ? ['client-response']
      : [stage.replace(/request$/, 'response'), stage.replace(/request$/, 'error')];
  const answer = meta.edges.find((one) => answers.includes(one.stage));
  const body = answer === undefined ? undefined : book.read(meta, answer.stage);
  if (answer === undefined || body === undefined || answer.made === true) return undefined;
  const type = answer.file.endsWith('.sse') ? 'text/event-stream' : 'application/json';
  return {
    status: answer.status ?? meta.status ?? 0,
    headers: new Headers({ 'content-type': type }),
    body,
    reset: answer.cut === true || (meta.error !== undefined && (meta.status ?? 0) < 400),
  };
}

/** The body as a value. @throws GatewayError invalid_request */
export function bodyOf({ name, body }: Pick<ReplaySource, 'name' | 'body'>): JsonObject {
  const value = tryParse(new TextDecoder().decode(body));
  if (!isObject(value)) throw invalid(`The request of ${name} is no JSON object.`);
  return value;
}

/** The bytes with another model name, everything else as it was. */
export function withModel(body: Uint8Array, model: string): Uint8Array {
  const member = topLevel(body)?.get('model');
  if (member === undefined) return body;
  return splice(body, member.valueStart, member.valueEnd, JSON.stringify(model));
}
