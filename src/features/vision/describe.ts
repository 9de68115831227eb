/** Has images described: each once, a few at a time, and a failure is no description. */

import type { Conversation, MediaSource } from '../../conversation/types.ts';
import type { Usage } from '../../conversation/usage.ts';
import { parseExceptions } from '../../lib/http/public-address.ts';
import { publicFetch, type Resolve } from '../../lib/http/safe-fetch.ts';
import type { ToolRun } from '../../samples/recording.ts';
import type { DescriptionStore } from './description-store.ts';
import { imageKey, type SeenImage } from './images.ts';
import { questionAbout, readDescription, sniffImage } from './question.ts';

/** What a model said, and the tokens that it took where the vendor told. */
export interface VisionAnswer {
  readonly text: string;
  readonly usage?: Pick<Usage, 'input' | 'output'> | undefined;
}

/** Asks a model (`provider/model`) and gives back its answer, or the text of it alone. May reject. */
export type AskModel = (
  target: string,
  conversation: Conversation,
  signal: AbortSignal,
) => Promise<string | VisionAnswer>;

/** Told of a look at an image that an exchange waited for. */
export type OnLook = (run: ToolRun) => void;

export interface VisionSettings {
  /** The `provider/model` that looks at images. */
  readonly target: string;
  /** What it is asked; a thorough description when left out. */
  readonly prompt?: string;
  /** Milliseconds for one image. */
  readonly timeoutMs: number;
}

export interface DescriberOptions {
  readonly store: Pick<DescriptionStore, 'get' | 'put'>;
  readonly ask: AskModel;
  readonly log: (event: string, fields: Readonly<Record<string, string | number>>) => void;
  /** Hosts and blocks from which images are fetched although they are not public. */
  readonly allow: readonly string[];
  /** Images looked at at the same time, over all requests; 4 when left out. */
  readonly parallel?: number;
  /** For tests. */
  readonly resolve?: Resolve;
}

/** An image that failed is left alone this long: neither the next try nor the next hop waits again. */
const LEFT_ALONE = 60_000;
const MAX_BYTES = 20_000_000;
const FETCH_TIMEOUT = 20_000;

export interface Describer {
  /** Resolves when each image has a description or failed to get one; rejects only with the signal. */
  describe(
    images: readonly SeenImage[],
    settings: VisionSettings,
    signal: AbortSignal,
    onLook?: OnLook,
  ): Promise<void>;
}

export function describer(options: DescriberOptions): Describer {
  const { store, log } = options;
  const running = new Map<string, Promise<ToolRun>>();
  const failedAt = new Map<string, number>();
  const turn = slots(options.parallel ?? 4);

  const look = async (
    key: string,
    { block, question }: SeenImage,
    settings: VisionSettings,
  ): Promise<ToolRun> => {
    const started = performance.now();
    const signal = AbortSignal.timeout(settings.timeoutMs);
    const fields = { target: settings.target, image: key.slice(0, 12) };
    const ms = () => Math.round(performance.now() - started);
    const run = { name: 'vision', arguments: JSON.stringify(fields), started };
    try {
      const source = await bytesOf(block.source, options, signal);
      const asked = questionAbout(source, question, settings.prompt);
      const answer = await unlessAborted(options.ask(settings.target, asked, signal), signal);
      const { text: said, usage } = typeof answer === 'string' ? { text: answer } : answer;
      const text = readDescription(said);
      if (text === undefined) throw new Error('the vision model said nothing');
      store.put(key, text);
      const tokens: Record<string, number> =
        usage === undefined ? {} : { input: usage.input, output: usage.output };
      log('vision.described', { ...fields, ms: ms(), characters: text.length, ...tokens });
      return { ...run, result: text, ms: ms() };
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      failedAt.set(key, performance.now());
      log('vision.failed', { ...fields, ms: ms(), why: why.slice(0, 300) });
      return { ...run, error: why.slice(0, 300), ms: ms() };
    }
  };

  const once = (key: string, image: SeenImage, settings: VisionSettings): Promise<ToolRun> => {
    let work = running.get(key);
    if (work === undefined) {
      // Not bound to who asked first: when that client leaves, others (or its next try) get the result.
      work = turn(() => look(key, image, settings)).finally(() => running.delete(key));
      running.set(key, work);
    }
    return work;
  };

  return {
    async describe(images, settings, signal, onLook) {
      for (const [key, at] of failedAt) {
        if (performance.now() - at >= LEFT_ALONE) failedAt.delete(key);
      }
      const waits = new Map<string, Promise<ToolRun>>();
      for (const image of images) {
        const key = imageKey(image.block);
        if (key === undefined || waits.has(key) || failedAt.has(key)) continue;
        if (store.get(key) === undefined) waits.set(key, once(key, image, settings));
      }
      if (waits.size === 0) return;
      const looks = await unlessAborted(Promise.all(waits.values()), signal);
      if (onLook !== undefined) for (const look of looks) onLook(look);
    },
  };
}

/** The image itself: fetched here where it has an address, from the public internet alone. */
async function bytesOf(
  source: MediaSource,
  options: DescriberOptions,
  signal: AbortSignal,
): Promise<MediaSource> {
  if (source.type === 'base64') {
    // Enough for the longest signature, whatever the padding.
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
  if (!mediaType.startsWith('image/')) throw new Error(`${contentType || 'this'} is no image`);
  return { type: 'base64', mediaType, data: Buffer.from(bytes).toString('base64') };
}

/** Runs at most `count` at the same time, the others in order. */
function slots(count: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let free = count;
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free++;
      else next();
    }
  };
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
