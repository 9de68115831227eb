/** The codec of Google's Gemini protocol (`generateContent`). */

import { type ByteList, wholeBytes } from '../../lib/bytes/byte-list.ts';
import { asBuffer, containsAny, needles } from '../../lib/bytes/bytes.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import type { AddressedRequest, Codec, EmbedMethod, ModelEntry } from '../codec.ts';
import { bareModel, withoutAddress } from './address.ts';
import { decodeReply } from './reply/decode-reply.ts';
import { digestReply, digestStream } from './reply/digest.ts';
import { encodeReply } from './reply/encode-reply.ts';
import { decodeError, encodeError } from './reply/errors.ts';
import { decodeRequest } from './request/decode-request.ts';
import { encodeRequest } from './request/encode-request.ts';
import { decodeStream } from './stream/decode-stream.ts';
import { encodeStream } from './stream/encode-stream.ts';
import { PROTOCOL } from './wire.ts';

/** `GET /v1beta/models`: `{models: [{name, displayName, inputTokenLimit, …}]}`; what is not known is left out. */
function encodeModels(models: readonly ModelEntry[]): JsonObject {
  return {
    models: models.map(({ id, provider, facts }) => ({
      name: `models/${id}`,
      version: '001',
      displayName: facts?.name ?? id,
      description: `Served by ${provider === '' ? 'this gateway' : provider}.`,
      ...(facts?.context !== undefined && { inputTokenLimit: facts.context }),
      ...(facts?.output !== undefined && { outputTokenLimit: facts.output }),
      supportedGenerationMethods: Object.values(METHOD_OF),
      ...(facts?.reasoning !== undefined && { thinking: facts.reasoning }),
    })),
  };
}

/** The path of a model's method. A name cannot leave its place in the path: its slashes are escaped. */
function pathOf(model: string, method: string): string {
  const name = bareModel(model);
  const tuned = name.startsWith('tunedModels/');
  const own = tuned ? name.slice('tunedModels/'.length) : name;
  return `/${tuned ? 'tunedModels' : 'models'}/${encodeURIComponent(own).replaceAll('%3A', ':')}:${method}`;
}

const METHOD_OF = {
  whole: 'generateContent',
  stream: 'streamGenerateContent',
  count: 'countTokens',
} as const;

const MEANT_NAMES: ReadonlySet<string> = new Set([
  'generateContentRequest',
  'generate_content_request',
]);
const MEANT = needles(...[...MEANT_NAMES].map((name) => `"${name}"`));

/** A request to count that holds the one that is meant names the model there, too (`models/…`), and Google compares. */
function withMeantModel(body: Uint8Array | ByteList, model: string): Uint8Array | ByteList {
  const bytes = wholeBytes(body);
  if (!containsAny(asBuffer(bytes), MEANT)) return body;
  const value = tryParse(new TextDecoder().decode(bytes));
  if (!isObject(value)) return body;
  const name = bareModel(model);
  const own = name.startsWith('tunedModels/') ? name : `models/${name}`;
  const meant = Object.entries(value).map(([key, one]) =>
    MEANT_NAMES.has(key) && isObject(one) ? [key, { ...one, model: own }] : [key, one],
  );
  return Buffer.from(JSON.stringify(Object.fromEntries(meant)));
}

function addressed(
  body: Uint8Array | ByteList,
  model: string,
  kind: keyof typeof METHOD_OF | EmbedMethod,
): AddressedRequest {
  return {
    path: pathOf(model, kind in METHOD_OF ? METHOD_OF[kind as keyof typeof METHOD_OF] : kind),
    query: kind === 'stream' ? 'alt=sse' : '',
    body: kind === 'count' ? withMeantModel(withoutAddress(body), model) : withoutAddress(body),
  };
}

export const googleGemini = {
  name: PROTOCOL,
  // https://github.com/googleapis/js-genai/blob/v3.3.0/src/_api_client.ts: processStreamResponse
  refusesOtherLines: true,
  modelAt: { answer: ['modelVersion'], frame: ['modelVersion'] },
  upstreamPath: '/models',
  addressed,
  decodeRequest,
  encodeRequest,
  decodeReply,
  encodeReply,
  decodeStream,
  encodeStream,
  decodeError,
  encodeError,
  digestReply,
  digestStream,
  terminalPrefixes: [],
  // https://cloud.google.com/apis/docs/system-parameters
  usageIsAsked: { member: 'usageMetadata', masks: ['fields', '$fields'] },
  encodeCount: (tokens) => ({ totalTokens: tokens }),
  encodeModels,
} satisfies Codec;
