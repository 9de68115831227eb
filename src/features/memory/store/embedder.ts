/** Gets vectors from an OpenAI-style `/embeddings` endpoint; after a failure queries skip it for a while. */

import type { Payer } from '../../../conversation/account/payer.ts';
import { GatewayError } from '../../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { normalized } from './vector-math.ts';

export interface EmbedderOptions {
  /** Identifies the model in the store of vectors. */
  readonly name: string;
  readonly model: string;
  readonly dimensions?: number;
  /** Put before questions and before the texts of events. */
  readonly queryPrefix?: string;
  readonly passagePrefix?: string;
  /** Milliseconds for the query of a recall. */
  readonly timeoutMs: number;
  /** Sends a body to the endpoint. @throws GatewayError for any failure */
  readonly post: (body: JsonObject, signal: AbortSignal, payer: Payer | undefined) => Promise<Json>;
  /** Called when a query fails. */
  readonly onFailure: (thrown: unknown) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

export interface Embedder {
  readonly name: string;
  /** Unit vectors in the order of the texts; undefined for an unusable vector. @throws GatewayError */
  embed(
    texts: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly (Float32Array | undefined)[]>;
  /** The vector of a question; undefined when it is not there in time. Never rejects. */
  embedQuery(text: string, signal?: AbortSignal, payer?: Payer): Promise<Float32Array | undefined>;
}

/** Milliseconds without vectors after a failure, so that not every turn waits for a dead endpoint. */
const PAUSE_AFTER_FAILURE = 30_000;
const BACKFILL_TIMEOUT = 30_000;
/** Characters of a text that are sent; models take about 8000 tokens. */
const MAX_TEXT = 6000;

export function embedder(options: EmbedderOptions): Embedder {
  const { now = Date.now, queryPrefix = '', passagePrefix = '' } = options;
  let pausedUntil = 0;

  async function embed(
    texts: readonly string[],
    signal: AbortSignal,
    ms = BACKFILL_TIMEOUT,
    payer?: Payer,
  ) {
    const answer = await options.post(
      {
        model: options.model,
        input: texts.map((text) => text.slice(0, MAX_TEXT).toWellFormed()),
        encoding_format: 'float',
        ...(options.dimensions !== undefined && { dimensions: options.dimensions }),
      },
      AbortSignal.any([signal, AbortSignal.timeout(ms)]),
      payer,
    );
    return readVectors(answer, texts.length);
  }

  return {
    name: options.name,
    embed: (texts, signal) =>
      embed(
        texts.map((text) => passagePrefix + text),
        signal,
      ),
    async embedQuery(text, signal, payer) {
      if (now() < pausedUntil) return undefined;
      try {
        const never = new AbortController().signal;
        const [vector] = await embed(
          [queryPrefix + text],
          signal ?? never,
          options.timeoutMs,
          payer,
        );
        pausedUntil = 0;
        return vector;
      } catch (thrown) {
        if (signal?.aborted === true) return undefined;
        pausedUntil = now() + PAUSE_AFTER_FAILURE;
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
      ? normalized(embedding as number[])
      : undefined;
  }
  if (typeof embedding !== 'string') return undefined;
  const bytes = new Uint8Array(Buffer.from(embedding, 'base64'));
  return bytes.length % 4 === 0 ? normalized(new Float32Array(bytes.buffer)) : undefined;
}
