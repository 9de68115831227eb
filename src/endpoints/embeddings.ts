/**
 * Vectors in two APIs: OpenAI's `/v1/embeddings`, and the methods of Google's models (batchEmbedContents, embedContent,
 * and Vertex' predict). A request in one form is read, and written in another for a target that has no such form.
 */

import type { EmbedMethod } from '../codecs/codec.ts';
import { GatewayError, invalid } from '../conversation/errors.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Usage } from '../conversation/usage.ts';
import { asBuffer } from '../lib/bytes/bytes.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../lib/json/json.ts';
import { compact } from '../lib/json/typed-reads.ts';
import type { RoutedTarget } from '../routing/index.ts';
import { TargetError } from '../upstream/target-error.ts';
import { usageOf } from './usage.ts';

/** `embeddings`: OpenAI's. */
export type EmbeddingForm = 'embeddings' | EmbedMethod;

interface Input {
  /** A text, or Google's `Content`. */
  readonly content: Json;
  readonly taskType?: Json | undefined;
  readonly title?: Json | undefined;
}

/** What is asked for, in whatever form. */
interface Wanted {
  readonly inputs: readonly Input[];
  readonly dimensions: Json | undefined;
  /** Members that mean nothing in another form. */
  readonly others: readonly string[];
}

/** Vectors in the order of the inputs. */
interface Vectors {
  readonly values: readonly Json[];
  readonly usage: Usage | undefined;
}

interface Form {
  /** @throws GatewayError invalid_request */
  read(body: JsonObject, target: string): Wanted;
  write(wanted: Wanted, model: string, target: string): JsonObject;
  readAnswer(answer: JsonObject): Vectors;
  /** @param tokens of the prompt; undefined: not known */
  writeAnswer(values: readonly Json[], tokens: number | undefined, model: string): JsonObject;
}

const FORMS: Readonly<Record<EmbeddingForm, Form>> = {
  // https://platform.openai.com/docs/api-reference/embeddings/create
  embeddings: {
    read({ input, dimensions, ...rest }, target) {
      const list = Array.isArray(input) ? input : [input ?? null];
      if (list.length === 0 || list.some((one) => typeof one !== 'string')) {
        throw takesNot(target, 'anything but a text or a list of texts', 'input');
      }
      const known = ['model', 'encoding_format', 'stream'];
      return {
        inputs: list.map((content) => ({ content })),
        dimensions,
        others: Object.keys(rest).filter((key) => !known.includes(key)),
      };
    },
    write: ({ inputs, dimensions }, model, target) =>
      compact({
        model,
        input: inputs.map(({ content }) => textOf(content, target)),
        dimensions,
      }),
    readAnswer({ data, usage }) {
      const list = objects(data);
      const values: Json[] = list.map(() => null);
      for (const [at, { index, embedding = null }] of list.entries()) {
        // Each has its place, and no vendor makes the list longer.
        const place = typeof index === 'number' && index in values ? index : at;
        values[place] = embedding;
      }
      return { values, usage: isObject(usage) ? usageOf(usage) : undefined };
    },
    writeAnswer: (values, tokens = 0, model) => ({
      object: 'list',
      data: values.map((embedding, index) => ({ object: 'embedding', index, embedding })),
      model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    }),
  },
  // https://ai.google.dev/api/embeddings
  batchEmbedContents: {
    read({ requests }) {
      const list = objects(requests).map(readContent);
      const [first] = list;
      if (first === undefined) throw invalid("Missing or empty: 'requests'.", 'requests');
      if (list.some(({ dimensions }) => dimensions !== first.dimensions)) {
        throw invalid('All vectors of a request have one size.', 'requests.outputDimensionality');
      }
      return {
        inputs: list.flatMap(({ inputs }) => inputs),
        dimensions: first.dimensions,
        others: [...new Set(list.flatMap(({ others }) => others))],
      };
    },
    write: ({ inputs, dimensions }, model) => ({
      requests: inputs.map(({ content, taskType, title }) =>
        compact({
          model: `models/${model}`,
          content: contentOf(content),
          taskType,
          title,
          outputDimensionality: dimensions,
        }),
      ),
    }),
    readAnswer: ({ embeddings, usageMetadata }) => ({
      values: objects(embeddings).map(({ values }) => values ?? null),
      usage: usageIn(usageMetadata),
    }),
    writeAnswer: (values, tokens) => ({
      embeddings: values.map((one) => ({ values: one })),
      ...usageMetadata(tokens),
    }),
  },
  embedContent: {
    read: readContent,
    write({ inputs, dimensions }, _model, target) {
      const [{ content, taskType, title }, ...more] = inputs as [Input, ...Input[]];
      if (more.length > 0) throw takesNot(target, 'more than one text in a request', 'input');
      const config = compact({ taskType, title, outputDimensionality: dimensions });
      return {
        content: contentOf(content),
        ...(Object.keys(config).length > 0 && { embedContentConfig: config }),
      };
    },
    readAnswer: ({ embedding, usageMetadata }) => ({
      values: isObject(embedding) ? [embedding.values ?? null] : [],
      usage: usageIn(usageMetadata),
    }),
    writeAnswer: ([values = null], tokens) => ({ embedding: { values }, ...usageMetadata(tokens) }),
  },
  // https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api
  predict: {
    read({ instances, parameters }) {
      const list = objects(instances);
      // Other models than those of texts have this method, too: Imagen's prompts are no texts to embed.
      if (list.length === 0 || list.some(({ content }) => typeof content !== 'string')) {
        const words = 'The method predict is served for texts to embed alone: instances[].content.';
        throw new GatewayError('not_found', words, { code: 'unknown_path', retryable: false });
      }
      const { outputDimensionality, ...rest } = isObject(parameters) ? parameters : {};
      const own = ['content', 'task_type', 'taskType', 'title'];
      const others = list.flatMap((one) => Object.keys(one).filter((key) => !own.includes(key)));
      return {
        inputs: list.map(({ content, task_type, taskType = task_type, title }) => ({
          content: content ?? null,
          taskType,
          title,
        })),
        dimensions: outputDimensionality,
        others: [...new Set([...others, ...Object.keys(rest)])],
      };
    },
    write: ({ inputs, dimensions }, _model, target) => ({
      instances: inputs.map(({ content, taskType, title }) =>
        compact({ content: textOf(content, target), task_type: taskType, title }),
      ),
      ...(dimensions !== undefined && { parameters: { outputDimensionality: dimensions } }),
    }),
    readAnswer({ predictions }) {
      const list = objects(predictions).map(({ embeddings }) => embeddings ?? null);
      let tokens: number | undefined;
      for (const one of list) {
        const statistics = isObject(one) && isObject(one.statistics) ? one.statistics : {};
        if (typeof statistics.token_count !== 'number') continue;
        tokens = (tokens ?? 0) + statistics.token_count;
      }
      return {
        values: list.map((one) => (isObject(one) ? (one.values ?? null) : null)),
        usage: usageIn(tokens === undefined ? undefined : { promptTokenCount: tokens }),
      };
    },
    // Google counts the tokens of each text. Of several texts only the sum is known here.
    writeAnswer: (values, tokens) => ({
      predictions: values.map((one) => ({
        embeddings: {
          values: one,
          ...(tokens !== undefined &&
            values.length === 1 && { statistics: { truncated: false, token_count: tokens } }),
        },
      })),
    }),
  },
};

/** A request of embedContent, alone or in a batch; Vertex' has a part for its settings. */
function readContent(body: JsonObject): Wanted {
  const { content, embedContentConfig, ...flat } = body;
  if (!isObject(content) && typeof content !== 'string') {
    throw invalid("Missing or invalid: 'content'.", 'content');
  }
  const settings: JsonObject = {
    ...flat,
    ...(isObject(embedContentConfig) ? embedContentConfig : {}),
  };
  const { model: _, stream: __, taskType, task_type, title, ...sizes } = settings;
  const { outputDimensionality, output_dimensionality, ...rest } = sizes;
  return {
    inputs: [{ content, taskType: taskType ?? task_type, title }],
    dimensions: outputDimensionality ?? output_dimensionality,
    others: Object.keys(rest),
  };
}

/** One text, with its parts as lines. @throws GatewayError if there is anything else in it */
function textOf(content: Json, target: string): string {
  if (typeof content === 'string') return content;
  const parts = isObject(content) ? objects(content.parts) : [];
  if (parts.length === 0 || parts.some(({ text }) => typeof text !== 'string')) {
    throw takesNot(target, 'anything but texts', 'content');
  }
  return parts.map(({ text }) => text).join('\n');
}

const contentOf = (content: Json): Json =>
  typeof content === 'string' ? { parts: [{ text: content }] } : content;

/** Another target may take it. */
const takesNot = (target: string, what: string, param: string): GatewayError =>
  new TargetError(
    'next-target',
    'invalid_request',
    `The embeddings of ${target} do not take ${what}.`,
    {
      param,
      retryable: false,
    },
  );

const objects = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? value.map((one) => (isObject(one) ? one : {})) : [];

const usageIn = (metadata: Json | undefined): Usage | undefined =>
  isObject(metadata) ? usageOf({ prompt_tokens: metadata.promptTokenCount ?? null }) : undefined;

const usageMetadata = (tokens: number | undefined): JsonObject =>
  tokens === undefined
    ? {}
    : { usageMetadata: { promptTokenCount: tokens, totalTokenCount: tokens } };

type Provider = RoutedTarget['provider'];

export const isGoogle = ({ protocol }: Pick<Provider, 'protocol'>): boolean =>
  protocol === 'google-gemini';

/** How one try's request and answer are written. */
export interface EmbeddingTry {
  readonly asked: EmbeddingForm;
  readonly sent: EmbeddingForm;
  /** Settings of embedContent have a part of their own. */
  readonly isVertex: boolean;
  /** The provider, for messages. */
  readonly provider: string;
  /** As the vendor spells it. */
  readonly model: string;
}

/** The form in which a target takes a request for vectors; undefined: in that of the client, and all bytes stay. */
export function embeddingTry(
  { provider, target: { model } }: RoutedTarget,
  asked: EmbeddingForm,
): EmbeddingTry | undefined {
  const google = isGoogle(provider);
  if (asked === 'embeddings' && !google) return undefined;
  const isVertex = google && /\/publishers\/[^/]+$/.test(provider.baseUrl);
  const sent = !google
    ? 'embeddings'
    : isVertex
      ? methodAtVertex(model)
      : asked === 'embedContent'
        ? asked
        : 'batchEmbedContents';
  return { asked, sent, isVertex, provider: provider.name, model };
}

/** github.com/googleapis/js-genai v3.3.0, src/_transformers.ts: tIsVertexEmbedContentModel */
const methodAtVertex = (model: string): EmbedMethod =>
  (model.includes('gemini') && model !== 'gemini-embedding-001') || model.includes('maas')
    ? 'embedContent'
    : 'predict';

/**
 * The request in the target's form: the client's bytes where they have it already, and name no other model.
 * @throws GatewayError invalid_request if it cannot have that form
 */
export function embeddingBody(body: Uint8Array, attempt: EmbeddingTry, notes: Notes): Uint8Array {
  const { asked, sent, provider, model } = attempt;
  const parsed = tryParse(asBuffer(body).toString());
  const value = isObject(parsed) ? parsed : {};
  if (asked === sent && asked !== 'predict') {
    const own = asked === 'embedContent' ? flat(value, attempt) : renamed(value, model);
    return own === value ? body : Buffer.from(JSON.stringify(own));
  }
  const wanted = FORMS[asked].read(value, provider);
  if (asked === sent) return body;
  const lost = [...wanted.others];
  if (sent === 'embeddings') {
    for (const name of ['taskType', 'title'] as const) {
      if (wanted.inputs.some((input) => input[name] !== undefined)) lost.push(name);
    }
  }
  for (const name of lost) notes.add('parameter_dropped', name, `not in ${sent}`);
  return Buffer.from(JSON.stringify(FORMS[sent].write(wanted, model, provider)));
}

/** Each request of a batch names the model once more, and Google refuses another one than that of the path. */
function renamed(value: JsonObject, model: string): JsonObject {
  const name = `models/${model}`;
  const requests = objects(value.requests);
  if (requests.every((one) => one.model === name)) return value;
  return { ...value, requests: requests.map((one) => ({ ...one, model: name })) };
}

/** The settings of Vertex' clients where the Gemini API has them. */
function flat(value: JsonObject, { isVertex }: EmbeddingTry): JsonObject {
  const { embedContentConfig, ...rest } = value;
  return isVertex || !isObject(embedContentConfig) ? value : { ...rest, ...embedContentConfig };
}

/** An answer in the client's form, and what it used; undefined: it has no vectors. */
export function embeddingAnswer(
  body: Uint8Array,
  { asked, sent, model }: EmbeddingTry,
  estimate: () => number,
): { readonly body: Uint8Array; readonly usage: Usage | undefined } | undefined {
  const value = tryParse(asBuffer(body).toString());
  const { values, usage } = FORMS[sent].readAnswer(isObject(value) ? value : {});
  if (values.length === 0 || !values.every(Array.isArray)) return undefined;
  if (asked === sent) return { body, usage };
  // OpenAI's clients rely on it.
  const tokens = usage?.input ?? (asked === 'embeddings' ? estimate() : undefined);
  const written = FORMS[asked].writeAnswer(values, tokens, model);
  return { body: Buffer.from(JSON.stringify(written)), usage };
}
