/** Has a model describe images: each image once, a few at a time, and never with a made-up description. */

import type { Payer } from '../../conversation/account/payer.ts';
import type { Conversation, MediaBlock, MediaSource } from '../../conversation/types.ts';
import type { Usage } from '../../conversation/usage.ts';
import { parseExceptions } from '../../lib/http/public-address.ts';
import { publicFetch, type Resolve } from '../../lib/http/safe-fetch.ts';
import { unlessAborted } from '../../lib/loop/abort.ts';
import { limitParallel } from '../../lib/loop/limit-parallel.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import type { ToolRun } from '../../samples/recording.ts';
import type { Entries } from '../../state/key-value/room.ts';
import { type ImageInContext, imageKey } from './images.ts';

/** A model's answer, with its tokens where the vendor reported them. */
export interface VisionAnswer {
  readonly text: string;
  readonly usage?: Pick<Usage, 'input' | 'output'> | undefined;
}

/** Asks a model (`provider/model`); returns its answer, or only the text. May reject. */
export type AskVisionModel = (
  target: string,
  conversation: Conversation,
  signal: AbortSignal,
  payer: Payer | undefined,
) => Promise<string | VisionAnswer>;

/** Called for each description that an exchange waited for. */
export type OnDescribed = (run: ToolRun) => void;

export interface VisionSettings {
  /** The `provider/model` that describes images. */
  readonly target: string;
  /** The prompt; asks for a thorough description when left out. */
  readonly prompt?: string;
  /** Milliseconds for one image. */
  readonly timeoutMs: number;
}

export interface DescriberOptions {
  /** The descriptions, for work that begins now. */
  readonly store: () => Entries<string>;
  readonly askModel: AskVisionModel;
  readonly log: (event: string, fields: Readonly<Record<string, string | number>>) => void;
  /** Hosts and address blocks from which images are fetched although they are not public. */
  readonly allow: readonly string[];
  /** Images described at the same time, over all requests; 4 when left out. */
  readonly parallel?: number;
  /** For tests. */
  readonly resolve?: Resolve;
}

/** Milliseconds before a failed image is tried again, so that the next try and hop do not wait for it. */
const RETRY_AFTER = 60_000;
const MAX_BYTES = 20_000_000;
const FETCH_TIMEOUT = 20_000;

export interface Describer {
  /** Resolves when each image has a description or failed to get one; rejects only with the signal. */
  describe(
    images: readonly ImageInContext[],
    settings: VisionSettings,
    signal: AbortSignal,
    onLook?: OnDescribed,
    payer?: Payer,
  ): Promise<void>;
}

export function describer(options: DescriberOptions): Describer {
  const { store, log } = options;
  const running = new Map<string, Promise<ToolRun>>();
  const failedAt = new Map<string, number>();
  const limited = limitParallel(options.parallel ?? 4);

  const describeOne = async (
    key: string,
    { block, question }: ImageInContext,
    descriptions: Entries<string>,
    settings: VisionSettings,
    payer: Payer | undefined,
  ): Promise<ToolRun> => {
    const started = performance.now();
    const signal = AbortSignal.timeout(settings.timeoutMs);
    const fields = { target: settings.target, image: key.slice(0, 12) };
    const ms = () => Math.round(performance.now() - started);
    const run = { name: 'vision', arguments: JSON.stringify(fields), started };
    try {
      const source = await bytesOf(block.source, options, signal);
      const request = visionRequest(source, question, settings.prompt);
      const answer = await unlessAborted(
        options.askModel(settings.target, request, signal, payer),
        signal,
      );
      const { text: answerText, usage } = typeof answer === 'string' ? { text: answer } : answer;
      const text = readDescription(answerText);
      if (text === undefined) throw new Error('the vision model gave no description');
      descriptions.put([key], text);
      await descriptions.settled([key]);
      const tokens: Record<string, number> =
        usage === undefined ? {} : { input: usage.input, output: usage.output };
      log('vision.described', { ...fields, ms: ms(), characters: text.length, ...tokens });
      return { ...run, result: text, ms: ms() };
    } catch (thrown) {
      const why = messageOf(thrown);
      failedAt.set(key, performance.now());
      log('vision.failed', { ...fields, ms: ms(), why: why.slice(0, 300) });
      return { ...run, error: why.slice(0, 300), ms: ms() };
    }
  };

  const once = (
    key: string,
    image: ImageInContext,
    descriptions: Entries<string>,
    settings: VisionSettings,
    payer: Payer | undefined,
  ): Promise<ToolRun> => {
    let work = running.get(key);
    if (work === undefined) {
      // Not tied to the first request: when its client leaves, others (or its next try) get the result. It pays.
      work = limited(() => describeOne(key, image, descriptions, settings, payer)).finally(() =>
        running.delete(key),
      );
      running.set(key, work);
    }
    return work;
  };

  return {
    async describe(images, settings, signal, onLook, payer) {
      for (const [key, at] of failedAt) {
        if (performance.now() - at >= RETRY_AFTER) failedAt.delete(key);
      }
      const descriptions = store();
      const waits = new Map<string, Promise<ToolRun>>();
      for (const image of images) {
        const key = imageKey(image.block);
        if (key === undefined || waits.has(key) || failedAt.has(key)) continue;
        if (descriptions.find([key]) !== undefined) continue;
        waits.set(key, once(key, image, descriptions, settings, payer));
      }
      if (waits.size === 0) return;
      const looks = await unlessAborted(Promise.all(waits.values()), signal);
      if (onLook !== undefined) for (const describeOne of looks) onLook(describeOne);
    },
  };
}

/** The image as bytes. An address is fetched here, from the public internet only. */
async function bytesOf(
  source: MediaSource,
  options: DescriberOptions,
  signal: AbortSignal,
): Promise<MediaSource> {
  if (source.type === 'base64') {
    // Enough for the longest signature.
    const type = sniffImage(Buffer.from(source.data.slice(0, 24), 'base64'));
    return type === undefined ? source : { ...source, mediaType: type };
  }
  if (source.type !== 'url') return source;
  const { bytes, contentType, truncated } = await publicFetch(source.url, {
    exceptions: parseExceptions(options.allow),
    timeoutMs: FETCH_TIMEOUT,
    maxBytes: MAX_BYTES,
    maxRedirects: 5,
    signal,
    headers: { 'user-agent': 'hopgate vision', accept: 'image/*' },
    resolve: options.resolve,
  });
  const mediaType = sniffImage(bytes) ?? contentType;
  if (truncated) throw new Error(`the image is larger than ${MAX_BYTES} bytes`);
  if (!mediaType.startsWith('image/')) throw new Error(`${contentType || 'this'} is not an image`);
  return { type: 'base64', mediaType, data: Buffer.from(bytes).toString('base64') };
}

const PROMPT =
  'Describe this image for a colleague who cannot see it and will answer the request below. Write ' +
  'down all text, code and numbers in it word for word, keep tables as tables, name the parts of a ' +
  'user interface or diagram with their places and states, then what is shown. Do not answer the ' +
  'request yourself and do not guess at what is not visible.';

const MAX_TOKENS = 4096;
const MAX_TEXT = 12_000;

/** A conversation of one turn: the prompt, the user's text and the image. */
function visionRequest(
  source: MediaSource,
  question: string,
  prompt: string = PROMPT,
): Conversation {
  const image: MediaBlock = { type: 'media', media: 'image', source };
  const text = question === '' ? prompt : `${prompt}\n\nThe request:\n${question}`;
  return {
    model: '',
    system: [],
    turns: [{ role: 'user', blocks: [{ type: 'text', text }, image] }],
    tools: [],
    settings: { stream: false, maxTokens: MAX_TOKENS },
  };
}

/** The description to store; undefined for an empty answer. */
export function readDescription(answer: string): string | undefined {
  const text = answer.toWellFormed().trim();
  if (text === '') return undefined;
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT).toWellFormed()} …` : text;
}

/** The image type by its first bytes, since clients often name another; undefined for unknown types. */
function sniffImage(bytes: Uint8Array): string | undefined {
  const starts = (at: number, ...values: number[]) => values.every((v, i) => bytes[at + i] === v);
  if (starts(0, 0x89, 0x50, 0x4e, 0x47)) return 'image/png';
  if (starts(0, 0xff, 0xd8, 0xff)) return 'image/jpeg';
  if (starts(0, 0x47, 0x49, 0x46, 0x38)) return 'image/gif';
  if (starts(0, 0x52, 0x49, 0x46, 0x46) && starts(8, 0x57, 0x45, 0x42, 0x50)) return 'image/webp';
  return undefined;
}
