/** Vectors from an OpenAI-style `/embeddings` endpoint; one that fails is left alone for a while. */

import { GatewayError } from '../../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { unit } from './nearest.ts';

export interface EmbedderOptions {
  /** Tells vectors of different models apart. */
  readonly name: string;
  readonly model: string;
  readonly dimensions?: number;
  /** For the query of a recall. */
  readonly timeoutMs: number;
  /** Sends a body to the endpoint. @throws GatewayError for whatever is no answer */
  readonly post: (body: JsonObject, signal: AbortSignal) => Promise<Json>;
  /** Told when it begins to fail. */
  readonly onFailure: (thrown: unknown) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

export interface Embedder {
  readonly name: string;
  /** Unit vectors in the order of the texts; undefined for a vector that is none. @throws GatewayError */
  all(
    texts: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly (Float32Array | undefined)[]>;
  /** A question's vector; undefined when there is none in time. Never rejects. */
  query(text: string, signal?: AbortSignal): Promise<Float32Array | undefined>;
}

/** After a failure queries go without vectors this long: no turn waits for a dead endpoint twice. */
const REST = 30_000;
const BACKFILL_TIMEOUT = 30_000;
/** Characters of a text that are sent; models take some 8000 tokens. */
const MOST = 6000;

export function embedder(options: EmbedderOptions): Embedder {
  const { now = Date.now } = options;
  let restUntil = 0;

  async function all(texts: readonly string[], signal: AbortSignal, ms = BACKFILL_TIMEOUT) {
    const answer = await options.post(
      {
        model: options.model,
        input: texts.map((text) => text.slice(0, MOST).toWellFormed()),
        encoding_format: 'float',
        ...(options.dimensions !== undefined && { dimensions: options.dimensions }),
      },
      AbortSignal.any([signal, AbortSignal.timeout(ms)]),
    );
    return readVectors(answer, texts.length);
  }

  return {
    name: options.name,
    all: (texts, signal) => all(texts, signal),
    async query(text, signal) {
      if (now() < restUntil) return undefined;
      try {
        const never = new AbortController().signal;
        const [vector] = await all([text], signal ?? never, options.timeoutMs);
        restUntil = 0;
        return vector;
      } catch (thrown) {
        if (signal?.aborted === true) return undefined;
        restUntil = now() + REST;
        options.onFailure(thrown);
        return undefined;
      }
    },
  };
}

/** `{data: [{index, embedding: [numbers] or base64 of float32}]}`, in the order of `index`. */
function readVectors(answer: Json, count: number): readonly (Float32Array | undefined)[] {
  const data = isObject(answer) && Array.isArray(answer.data) ? (answer.data as Json[]) : [];
  const out = new Array<Float32Array | undefined>(count).fill(undefined);
  let read = 0;
  data.forEach((one, at) => {
    if (!isObject(one)) return;
    const place = typeof one.index === 'number' ? one.index : at;
    if (!(place in out)) return;
    out[place] = vectorOf(one.embedding);
    read++;
  });
  if (read < count) {
    throw new GatewayError('upstream', 'The embeddings endpoint gave fewer vectors than texts.');
  }
  return out;
}

function vectorOf(embedding: Json | undefined): Float32Array | undefined {
  if (Array.isArray(embedding)) {
    return embedding.every((value) => typeof value === 'number')
      ? unit(embedding as number[])
      : undefined;
  }
  if (typeof embedding !== 'string') return undefined;
  const bytes = new Uint8Array(Buffer.from(embedding, 'base64'));
  return bytes.length % 4 === 0 ? unit(new Float32Array(bytes.buffer)) : undefined;
}
