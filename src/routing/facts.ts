/** The facts of a request that routes depend on; each is computed from the conversation when it is first read. */

import { innerBlocks, isInstruction } from '../conversation/edit.ts';
import type {
  Block,
  Conversation,
  MediaBlock,
  MediaSource,
  ProtocolName,
  Settings,
  Turn,
} from '../conversation/types.ts';
import { BYTES_PER_TOKEN, estimatedTokens } from '../conversation/usage.ts';
import { containsAny, needles } from '../lib/bytes/bytes.ts';
import { imageHeader } from '../lib/bytes/image-header.ts';
import { secondsOf } from '../lib/bytes/media-length.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { RouteRequest } from './request.ts';

export interface FactsInput {
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly stream: boolean;
  /** Length of the body. */
  readonly bytes: number;
  readonly headers: ReadonlyHeaders;
  /** What tells the session, or the object that finds it when it is first read. */
  readonly affinity: string | { readonly affinity: string };
  /** Milliseconds since 1970; left out: the moment when it is first read. */
  readonly time?: number;
  /** The conversation is read when the first fact needs it; that may decode the body. */
  readonly request: DecodedRequest;
}

interface DecodedRequest {
  readonly conversation: Conversation;
  /** The body, when it is available. */
  readonly bytes?: Buffer;
}
const BYTES_PER_TOKEN_OF_LETTERS = 5.6;
/** Bytes at each end of a body from which its script is estimated. */
const SAMPLED = 32_768;
/** A smaller body is decoded for its media only if it seems to contain any. */
const SMALL_BODY = 64_000;
/** How the protocols name images, documents, and what they only link to. */
const MEDIA = needles('"image', '"input_image', '"input_file', '"document"', '"file"');
const CHAT_MEDIA = needles('"image', '"input_image', '"video_url', '"document"', '"file"');
const GEMINI_MEDIA = needles('"image', '"audio', '"video', '"fileUri', '"file_uri');
const mediaNames = (protocol: ProtocolName) =>
  protocol === 'google-gemini' ? GEMINI_MEDIA : protocol === 'openai-chat' ? CHAT_MEDIA : MEDIA;

/** A lazy request for the router: facts that no rule reads are never computed, and none is computed twice. */
export function requestFacts(input: FactsInput): RouteRequest {
  return new Facts(input);
}

/** The facts that were computed. A separate object: a request with another model name shares it with the original. */
interface ComputedFacts {
  time?: number;
  latestTurns?: readonly Turn[];
  tokens?: EstimatedTokens;
  images?: number;
  documents?: number;
  toolNames?: readonly string[];
  hostedTools?: readonly string[];
  background?: boolean;
  lastUserText?: string;
}

class Facts implements RouteRequest {
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly stream: boolean;
  readonly headers: ReadonlyHeaders;
  // Not `#` members: `withModel` makes objects whose prototype is this one.
  private readonly session: FactsInput['affinity'];
  private readonly bytes: number;
  private readonly request: DecodedRequest;
  private readonly known: ComputedFacts = {};

  constructor(input: FactsInput) {
    this.model = input.model;
    this.protocol = input.protocol;
    this.stream = input.stream;
    this.headers = input.headers;
    this.session = input.affinity;
    if (input.time !== undefined) this.known.time = input.time;
    this.bytes = input.bytes;
    this.request = input.request;
  }

  get affinity(): string {
    return typeof this.session === 'string' ? this.session : this.session.affinity;
  }

  get time(): number {
    this.known.time ??= Date.now();
    return this.known.time;
  }

  private get latestTurns(): readonly Turn[] {
    this.known.latestTurns ??= sinceLastUserMessage(this.request.conversation.turns);
    return this.known.latestTurns;
  }

  get tokens(): number {
    return this.estimated().all;
  }

  get heard(): number {
    return this.estimated().heard;
  }

  private estimated(): EstimatedTokens {
    this.known.tokens ??= estimateTokens(this.bytes, this.request, this.protocol, this.model);
    return this.known.tokens;
  }

  get images(): number {
    this.known.images ??= countMedia(this.latestTurns, 'image');
    return this.known.images;
  }

  get documents(): number {
    this.known.documents ??= countMedia(this.request.conversation.turns, 'document');
    return this.known.documents;
  }

  get toolNames(): readonly string[] {
    this.known.toolNames ??= this.request.conversation.tools.flatMap((tool) =>
      tool.type === 'hosted' ? [] : [tool.name],
    );
    return this.known.toolNames;
  }

  get hostedTools(): readonly string[] {
    this.known.hostedTools ??= this.request.conversation.tools.flatMap((tool) =>
      tool.type === 'hosted' ? [tool.name] : [],
    );
    return this.known.hostedTools;
  }

  get thinking(): boolean {
    return isThinking(this.request.conversation.settings);
  }

  get effort(): string | undefined {
    return this.request.conversation.settings.reasoning?.effort;
  }

  get background(): boolean {
    this.known.background ??= isBackground(this.request.conversation);
    return this.known.background;
  }

  get lastUserText(): string {
    this.known.lastUserText ??= this.latestTurns
      .filter((turn) => isUserMessage(turn))
      .flatMap((turn) => turn.blocks.flatMap(textOf))
      .join('\n');
    return this.known.lastUserText;
  }
}

/** Whether a turn is a message of the user, not the result of a tool. */
const isUserMessage = (turn: Turn) =>
  turn.role === 'user' && !turn.blocks.some((block) => block.type === 'tool-result');

/**
 * The turns from the user's last message to the end. In a tool loop the last turn is a tool result; an
 * image that the user asked about comes before it, and must still count.
 */
function sinceLastUserMessage(turns: readonly Turn[]): readonly Turn[] {
  let start = turns.findLastIndex(isUserMessage);
  if (start < 0) return turns;
  while (start > 0 && (isUserMessage(turns[start - 1]!) || turns[start - 1]!.role === 'system'))
    start--;
  return turns.slice(start);
}

function countMedia(turns: readonly Turn[], media: 'image' | 'document'): number {
  let count = 0;
  const visit = (block: Block) => {
    if (block.type === 'media' && block.media === media) count++;
    else innerBlocks(block).forEach(visit);
  };
  for (const turn of turns) turn.blocks.forEach(visit);
  return count;
}

interface EstimatedTokens {
  readonly all: number;
  /** Those of sound, which may have a price of their own. */
  readonly heard: number;
}

/**
 * Four bytes a token, with a correction for two-byte letters. Media count by their pixels, pages or seconds: by the
 * bytes of their base64 every image would be a long context.
 */
function estimateTokens(
  bytes: number,
  request: DecodedRequest,
  protocol: ProtocolName,
  model: string,
): EstimatedTokens {
  const hasMedia =
    bytes >= SMALL_BODY ||
    (request.bytes !== undefined && containsAny(request.bytes, mediaNames(protocol)));
  const [text, media, heard] = hasMedia
    ? withoutMedia(bytes, request, protocol, model)
    : [bytes, 0, 0];
  const letters = request.bytes === undefined ? 0 : shareOfTwoByteLetters(request.bytes);
  const perByte = (1 - letters) / BYTES_PER_TOKEN + letters / BYTES_PER_TOKEN_OF_LETTERS;
  return { all: Math.ceil(Math.max(0, text) * perByte) + media, heard };
}

/** Bytes of a body beside its media, the tokens of these, and those of sound among them. */
function withoutMedia(
  bytes: number,
  request: DecodedRequest,
  protocol: ProtocolName,
  model: string,
): readonly [text: number, media: number, heard: number] {
  let text = bytes;
  let media = 0;
  let heard = 0;
  const visit = (block: Block) => {
    if (block.type !== 'media') return innerBlocks(block).forEach(visit);
    const tokens = estimateMedia(block, protocol, model);
    media += tokens;
    if (block.media === 'audio') heard += tokens;
    if (block.source.type === 'base64') text -= block.source.data.length;
    else if (block.source.type === 'text') text -= block.source.text.length;
  };
  for (const turn of request.conversation.turns) turn.blocks.forEach(visit);
  return [text, media, heard];
}

/**
 * The share of a body's bytes that are two-byte letters (Greek, Cyrillic, Hebrew, Arabic), from its beginning
 * and end. Such text has 2.8 letters a token (o200k, Russian).
 */
function shareOfTwoByteLetters(bytes: Uint8Array): number {
  const most = 2 * SAMPLED;
  const leads =
    bytes.length <= most
      ? leadsOf(bytes)
      : leadsOf(bytes.subarray(0, SAMPLED)) + leadsOf(bytes.subarray(-SAMPLED));
  // A smaller share comes from accents and signs in other scripts.
  const share = (2 * leads) / Math.max(1, Math.min(bytes.length, most));
  return share < 0.05 ? 0 : Math.min(1, share);
}

function leadsOf(part: Uint8Array): number {
  let leads = 0;
  for (let at = 0; at < part.length; at++) if (part[at]! >= 0xcd && part[at]! <= 0xdf) leads++;
  return leads;
}

function isThinking({ reasoning }: Settings): boolean {
  if (reasoning === undefined || reasoning.enabled === false) return false;
  if (reasoning.enabled || reasoning.adaptive || (reasoning.budget ?? 0) > 0) return true;
  return reasoning.effort !== undefined && reasoning.effort !== 'none';
}

/** Phrases in the instructions of agents' title requests. */
const TITLE_REQUEST =
  /\btitle generator\b|\b(generate|write|create) (a|an) (\w{1,40},? ){0,4}title\b|\bnaming a (\w{1,40} )?session\b/i;
const HEAD = 4096;

/** Whether this is a request for a title: no tools, and a schema or instructions that ask for a title. */
function isBackground(conversation: Conversation): boolean {
  if (conversation.tools.length > 0) return false;
  const { format } = conversation.settings;
  if (format?.type === 'schema') {
    const properties = format.schema.properties;
    const keys = typeof properties === 'object' && properties ? Object.keys(properties) : [];
    if (keys.includes('title') && keys.length <= 2) return true;
  }
  const instructions = [
    ...conversation.system,
    ...conversation.turns.filter(isInstruction).flatMap((turn) => turn.blocks),
  ];
  return instructions.flatMap(textOf).some((text) => TITLE_REQUEST.test(text.slice(0, HEAD)));
}

const textOf = (block: Block): readonly string[] => (block.type === 'text' ? [block.text] : []);

/** Bytes of a PDF in which pages are counted. */
const PDF_BYTES = 4_194_304;
interface Size {
  readonly width: number;
  readonly height: number;
}

/** Tokens of one page of a PDF: its text, and an image of it. */
const PAGE = 2000;
/** Bytes of a page, for a PDF in which none can be counted. */
const PAGE_BYTES = 75_000;

/** The tokens of one block. A model named `claude…` has Anthropic's rule, any other that of the client's protocol. */
export function estimateMedia(block: MediaBlock, protocol: ProtocolName, model: string): number {
  const { source, media } = block;
  if (media === 'audio' || media === 'video') return recordingTokens(source, media, model);
  if (media === 'document') return documentTokens(source);
  const claude = protocol === 'anthropic-messages' || model.startsWith('claude');
  const size = source.type === 'base64' ? imageHeader(source.data) : undefined;
  // Not an image of a kind that vendors accept.
  if (source.type === 'base64' && size === undefined) return 0;
  return claude ? claudeTokens(size) : openaiTokens(size, block.detail);
}

/** Of a recording whose length is not known: it is somewhere else. */
const USUAL_SECONDS = 60;
/** More than any window has. */
const MAX_RECORDING = 10_000_000;
/**
 * Tokens of a second of sound: OpenAI (https://developers.openai.com/api/docs/guides/realtime-costs), Mistral (a token is
 * 80 ms: https://www.scaleway.com/en/docs/managed-inference/reference-content/model-catalog), Qwen (openai-compatible Omni:
 * https://help.aliyun.com/zh/model-studio/qwen-omni).
 */
const SOUND: readonly (readonly [model: RegExp, tokens: number])[] = [
  [/\bgpt-|\bo\d/i, 10],
  [/voxtral|mistral/i, 12.5],
  [/qwen/i, 25],
];
/** Gemini's, and the most that any vendor counts (https://ai.google.dev/gemini-api/docs/tokens). */
const OTHER_SOUND = 32;
/** One picture a second, with its sound (https://ai.google.dev/gemini-api/docs/video-understanding). */
const FILM = 300;

function recordingTokens(source: MediaSource, media: 'audio' | 'video', model: string): number {
  const seconds =
    source.type === 'base64' ? secondsOf(source.mediaType, source.data) : USUAL_SECONDS;
  const sound = SOUND.find(([name]) => name.test(model))?.[1] ?? OTHER_SOUND;
  return Math.min(MAX_RECORDING, Math.ceil(seconds * (media === 'video' ? FILM : sound)));
}

/**
 * Width × height / 750, after scaling down to at most 1568 pixels a side; at most 1,600 tokens.
 * @see https://docs.anthropic.com/en/docs/build-with-claude/vision#calculate-image-costs
 */
function claudeTokens(size: Size | undefined): number {
  if (size === undefined) return 1600;
  const scale = Math.min(1, 1568 / Math.max(size.width, size.height));
  return Math.min(1600, Math.ceil((size.width * scale * (size.height * scale)) / 750));
}

/**
 * 85, and 170 for each tile of 512 × 512 pixels, after scaling down to at most 2048 pixels a side and 768 on
 * the shorter one.
 * @see https://platform.openai.com/docs/guides/images-vision#calculating-costs
 */
function openaiTokens(size: Size | undefined, detail: string | undefined): number {
  if (detail === 'low') return 85;
  if (size === undefined) return 765;
  const fit = Math.min(1, 2048 / Math.max(size.width, size.height));
  const short = Math.min(1, 768 / (Math.min(size.width, size.height) * fit));
  const tiles = (side: number) => Math.max(1, Math.ceil((side * fit * short) / 512));
  return 85 + 170 * tiles(size.width) * tiles(size.height);
}

function documentTokens(source: MediaSource): number {
  if (source.type === 'text') return estimatedTokens(source.text.length);
  if (source.type !== 'base64') return PAGE;
  const { data, mediaType } = source;
  const bytes = Math.floor((data.length * 3) / 4);
  if (mediaType.startsWith('text/')) return estimatedTokens(bytes);
  const text = Buffer.from(data.slice(0, (PDF_BYTES / 3) * 4), 'base64').toString('latin1');
  const pages = text.match(/\/Type ?\/Page(?![a-zA-Z])/g)?.length ?? 0;
  return PAGE * Math.max(1, pages === 0 ? Math.round(bytes / PAGE_BYTES) : pages);
}
