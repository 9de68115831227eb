/** The endpoints beside the model protocols: which paths they have here and at a vendor. */

import type { EmbedMethod } from '../codecs/codec.ts';
import type { TryStart } from '../conversation/account/payer.ts';
import type { EndpointName } from '../conversation/models/endpoint-names.ts';
import type { RoutedTarget } from '../routing/index.ts';
import { isGoogle } from './embeddings.ts';

export interface Endpoint {
  readonly name: EndpointName;
  /** Behind `/v1`, and behind the base URL of a provider. */
  readonly path: string;
  /** The model of a request that names none, as at OpenAI; left out: it must name one. */
  readonly defaultModel?: string;
  /** Other paths by which clients know it. */
  readonly otherPaths?: readonly string[];
  /** Its answer is no text and no numbers about texts: without usage, nothing says how much was made. */
  readonly media?: boolean;
  /** Tokens of what a request of so many bytes sends and gets beside text. */
  mediaTokens?(bytes: number): TryStart['media'];
  /** Its answer is a text that may be empty, such as the transcript of silence. */
  readonly mayBeEmpty?: boolean;
  /** Its answer may tell its length in place of a usage. */
  readonly isTranscript?: boolean;
  /** Its answer is a file of any kind, forwarded as it is. */
  readonly isFile?: boolean;
  /** The form in which the client asks for vectors; left out: OpenAI's. */
  readonly form?: EmbedMethod;
  /** Why a provider cannot have it, in words behind "Provider "; undefined: it may. Left out: as {@link whyNot}. */
  whyNot?(provider: RoutedTarget['provider']): string | undefined;
}

/** Endpoints beside the protocols are OpenAI's. */
export function whyNot({ name, protocol, baseUrl }: RoutedTarget['provider']): string | undefined {
  if (baseUrl.startsWith('demo:')) return `${name} is the built-in demo model`;
  if (protocol === 'openai-chat' || protocol === 'openai-responses') return undefined;
  return `${name} speaks ${protocol}`;
}

/** Google's models make vectors, too, by methods of their own. */
const EMBEDDINGS: Endpoint = {
  name: 'embeddings',
  path: '/embeddings',
  whyNot: (provider) => (isGoogle(provider) ? undefined : whyNot(provider)),
};

/** The same, for a client of Google's methods. */
export const embeddingsBy = (form: EmbedMethod): Endpoint => ({ ...EMBEDDINGS, form });

/**
 * An image of medium quality, and one of 3584×2048 in high quality (gpt-image-1 and 2:
 * https://developers.openai.com/api/docs/guides/image-generation#calculating-costs).
 */
const image = (): TryStart['media'] => ({
  likely: { input: 0, output: 1584 },
  most: { input: 0, output: 12_329 },
});

/**
 * Of gpt-4o-mini-tts, a minute is 1250 tokens ($0.015 a minute, $12 a million: https://developers.openai.com/api/docs/pricing)
 * and about 900 letters; slow speech takes twice as long.
 */
const speech = (bytes: number): TryStart['media'] => ({
  likely: { input: 0, output: Math.ceil(1.4 * bytes) },
  most: { input: 0, output: Math.ceil(2.8 * bytes) },
});

/**
 * Of gpt-4o-transcribe, ten tokens for a second, of 1400 at most, and 2000 tokens of text
 * (https://developers.openai.com/api/docs/models/gpt-4o-transcribe). A second has 8 kB, or 2 kB of what is packed most tightly.
 */
const transcript = (bytes: number): TryStart['media'] => {
  const heard = (bytesOfToken: number) => {
    const input = Math.min(14_000, Math.ceil(bytes / bytesOfToken));
    return { input, output: Math.min(2000, input), seconds: bytes / (10 * bytesOfToken) };
  };
  return { likely: heard(800), most: heard(200) };
};

const TRANSCRIPT = { media: true, mayBeEmpty: true, isTranscript: true, mediaTokens: transcript };

export const ENDPOINTS: readonly Endpoint[] = [
  EMBEDDINGS,
  { name: 'completions', path: '/completions' },
  // Cohere's clients have the second one.
  { name: 'rerank', path: '/rerank', otherPaths: ['/v2/rerank'] },
  // https://platform.openai.com/docs/api-reference/moderations/create
  { name: 'moderations', path: '/moderations', defaultModel: 'omni-moderation-latest' },
  { name: 'images-generations', path: '/images/generations', media: true, mediaTokens: image },
  { name: 'images-edits', path: '/images/edits', media: true, mediaTokens: image },
  { name: 'images-variations', path: '/images/variations', media: true },
  { name: 'audio-speech', path: '/audio/speech', media: true, mediaTokens: speech },
  { name: 'audio-transcriptions', path: '/audio/transcriptions', ...TRANSCRIPT },
  { name: 'audio-translations', path: '/audio/translations', ...TRANSCRIPT },
];
