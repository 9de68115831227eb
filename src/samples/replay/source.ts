/** A request to send again: the body of a sample, with its headers, target and recorded answer. */

import { GatewayError, invalid } from '../../conversation/errors.ts';
import { protocolOf } from '../../conversation/models/endpoint-names.ts';
import { splice } from '../../lib/bytes/bytes.ts';
import { isObject, type JsonObject, topLevel, tryParse } from '../../lib/json/json.ts';
import type { ExportedSample, SampleMeta, SampleStore } from '../sample.ts';
import type { CompleteAnswer } from './outcome.ts';
import type { SendableRequest } from './send.ts';

export interface ReplaySource extends SendableRequest {
  /** The sample's id, or the file's name. */
  readonly name: string;
  /** It is a request as a vendor received it, and is sent to a vendor unchanged. */
  readonly direct: boolean;
  /** The target it went to, `provider/model`. */
  readonly target: string | undefined;
  /** The recorded answer. */
  readonly answer: CompleteAnswer | undefined;
  /** Milliseconds that the recorded exchange took. */
  readonly totalMs?: number;
  /** Until the first byte of the recorded answer. */
  readonly firstByteMs?: number;
}

// Headers about the client and the protocol; none about credentials or the connection.
const CARRIED =
  /^(anthropic-(version|beta)|openai-beta|user-agent|x-app|x-claude-code-|session[-_]id|originator)/;

/** The headers that are sent again with a request; masked ones are left out. */
export function carriedHeaders(headers: Readonly<Record<string, string>> = {}): Headers {
  const carried = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (CARRIED.test(name) && !value.includes('**')) carried.set(name, value);
  }
  return carried;
}

/** The sample of an id or of a unique part of one. @throws GatewayError not_found when there is none, or several */
export function requireSample(store: SampleStore, id: string): SampleMeta {
  const meta = store.find(id);
  if (meta !== undefined) return meta;
  const fits = store.matching(id, CANDIDATES + 1);
  if (fits.length === 0) {
    throw new GatewayError('not_found', `There is no sample "${id}" in ${store.root}.`);
  }
  const more = fits.length > CANDIDATES ? ', and more' : '';
  const named = fits.slice(0, CANDIDATES).map((row) => row.id);
  throw new GatewayError(
    'not_found',
    `"${id}" matches more than one sample in ${store.root}: ${named.join(', ')}${more}.`,
  );
}

/** Ids that the error names where several fit. */
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
 * The request of a sample: the client's, unless another stage is named.
 * @throws GatewayError not_found when there is no such request
 */
export function fromSample(
  store: Pick<SampleStore, 'read'>,
  meta: SampleMeta,
  stage = 'client-request',
): ReplaySource {
  const body = store.read(meta, stage);
  if (body === undefined || !stage.endsWith('request')) {
    const names = sendableStages(meta).join(', ');
    throw new GatewayError('not_found', `${meta.id} has no request "${stage}". It has: ${names}.`);
  }
  const stageInfo = meta.edges.find((one) => one.stage === stage);
  const direct = stage !== 'client-request';
  const entry = protocolOf(meta.entry);
  if (entry === undefined) {
    throw invalid(`${meta.id} is of the endpoint ${meta.entry}, which cannot be replayed.`);
  }
  return {
    name: meta.id,
    protocol: direct ? (stageInfo?.protocol ?? meta.provider_protocol ?? entry) : entry,
    body,
    headers: carriedHeaders(stageInfo?.headers),
    search: direct || meta.search?.includes('**') === true ? '' : (meta.search ?? ''),
    direct,
    target: stageInfo?.target ?? meta.target,
    answer: answerTo(store, meta, stage),
    ...(direct ? {} : { totalMs: meta.total_ms, firstByteMs: meta.first_byte_ms }),
  };
}

/** The answer to the request of a stage; undefined when there is none, or none yet. */
function answerTo(
  store: Pick<SampleStore, 'read'>,
  meta: SampleMeta,
  stage: string,
): CompleteAnswer | undefined {
  if (meta.state === 'open') return undefined;
  const answers =
    stage === 'client-request'
      ? ['client-response']
      : [stage.replace(/request$/, 'response'), stage.replace(/request$/, 'error')];
  const answer = meta.edges.find((one) => answers.includes(one.stage));
  const body = answer === undefined ? undefined : store.read(meta, answer.stage);
  if (answer === undefined || body === undefined || answer.made === true) return undefined;
  const type = answer.file.endsWith('.sse') ? 'text/event-stream' : 'application/json';
  return {
    status: answer.status ?? meta.status ?? 0,
    headers: new Headers({ 'content-type': type }),
    body,
    reset: answer.cut === true || (meta.error !== undefined && (meta.status ?? 0) < 400),
  };
}

/** The parsed body. @throws GatewayError invalid_request */
export function bodyOf({ name, body }: Pick<ReplaySource, 'name' | 'body'>): JsonObject {
  const value = tryParse(new TextDecoder().decode(body));
  if (!isObject(value)) throw invalid(`The request of ${name} is not a JSON object.`);
  return value;
}

/** The body with another model name and otherwise unchanged. */
export function withModel(body: Uint8Array, model: string): Uint8Array {
  const member = topLevel(body)?.get('model');
  if (member === undefined) return body;
  return splice(body, member.valueStart, member.valueEnd, JSON.stringify(model));
}
