/** Recognizes refusals of images, files and recordings: not readable, too large, too many, or none at all for this model. */

import { innerBlocks } from '../edit.ts';
import type { GatewayError } from '../errors.ts';
import type { Profile } from '../profile-facts.ts';
import type { Block, Conversation, MediaBlock } from '../types.ts';

/** The block that the vendor names: indices of the message, of the block, and of a block within a tool result. */
export interface MediaPlace {
  readonly message: number;
  readonly block: number;
  readonly inner: number | undefined;
}

/**
 * - `bytes`: a file has at most so many, as base64
 * - `longer-side`: pixels, at most; `shorter-side`: pixels, it must have more
 * - `pages`: a document has at most so many
 * - `count`: a request has at most so many files
 */
export interface MediaLimit {
  readonly of: 'bytes' | 'longer-side' | 'shorter-side' | 'pages' | 'count';
  readonly most: number;
}

export interface MediaRefusal {
  readonly kind: 'media';
  readonly media: readonly MediaBlock['media'][];
  readonly at?: MediaPlace | undefined;
  readonly limit?: MediaLimit | undefined;
  /** The request is too large as a whole: the last ones stay. */
  readonly older?: boolean;
  /** Facts that also hold for later requests. */
  readonly facts?: Partial<Profile>;
}

const IMAGE = ['image'] as const;
const FILE = ['document'] as const;
const ANY = ['image', 'document', 'audio', 'video'] as const;
const RECORDED = ['audio', 'video'] as const;

/** Sentences that tell a limit: the group is its number. */
const LIMITS: readonly (readonly [RegExp, MediaLimit['of'], MediaRefusal['media']])[] = [
  [/image exceeds \d{1,3} ?mb maximum: \d{1,12} bytes > (\d{1,12}) bytes/, 'bytes', IMAGE],
  [/exceeded limit on max bytes per data-uri item ?: ?(\d{1,12})/, 'bytes', ANY],
  [/image dimensions exceed max allowed size\b.{0,40}: (\d{1,6}) pixels/, 'longer-side', IMAGE],
  [/input size exceed limit (\d{1,6})x\d/, 'longer-side', IMAGE],
  [/(?:height|width):\d{1,6}.{0,40} must be larger than (\d{1,4})/, 'shorter-side', IMAGE],
  [/maximum of (\d{1,5}) pdf pages/, 'pages', FILE],
  [/too many (?:images|documents)\b.{0,40}?\d{1,5} > (\d{1,5})/, 'count', IMAGE],
  [
    /too many images\b.{0,60}?(?:max(?:imum)?(?: is| of)?|up to|at most):? (\d{1,5})/,
    'count',
    IMAGE,
  ],
  [/at most ([1-9]\d{0,4}) image(?:s|\(s\))?\b/, 'count', IMAGE],
];

/** Sentences and codes of what a vendor cannot read or fetch. */
const UNREADABLE: readonly (readonly [RegExp, MediaRefusal['media']])[] = [
  [
    /could not process (?:the )?image|unable to process input image|provided image is not valid/,
    IMAGE,
  ],
  [/image does not match the provided media type|but the image appears to be an? image/, IMAGE],
  [/messages\.\d{1,6}\.content\.\d{1,6}\.(?:tool_result\.content\.\d{1,6}\.)?image\.source/, IMAGE],
  [
    /messages\.\d{1,6}\.content\.\d{1,6}\.(?:tool_result\.content\.\d{1,6}\.)?(?:pdf|document)\.source/,
    FILE,
  ],
  [
    /could not process (?:the )?pdf|pdf (?:specified )?(?:is|was) (?:password|not valid|encrypted)|document has no pages/,
    FILE,
  ],
  [/unsupported mime type: image/, IMAGE],
  [/unsupported mime type: (?:application|text)/, FILE],
  // Codes of failed Responses: https://github.com/openai/openai-openapi (ResponseErrorCode)
  [
    /\b(?:invalid_image(?:_format|_url)?|invalid_base64_image|unsupported_image_media_type|image_(?:too_large|too_small|parse_error|file_too_large|file_not_found)|empty_image_file|failed_to_download_image)\b/,
    IMAGE,
  ],
  [/uploaded an unsupported image|does not represent a valid image/, IMAGE],
  [
    /image length and width do not meet|image format is illegal|absolute aspect ratio must be smaller/,
    IMAGE,
  ],
  [
    /(?:failed to|unable to|cannot|could not|error while|timeout while) (?:download|downloading|fetch|fetching|load|decode|open|identify|parse) (?:the )?(?:image|media|multimodal|content from the provided url)/,
    IMAGE,
  ],
  [
    /image file is truncated|(?:invalid|corrupt|corrupted|malformed|truncated|unrecognized|unreadable) (?:base64 )?image|image .{0,120}has an invalid format/,
    IMAGE,
  ],
  [
    /image_url\. expected a valid url|must be a base64 encoded image|only base64 data urls are supported/,
    IMAGE,
  ],
  [/图片.{0,8}(?:解析|格式)|图片(?:损坏|无法)/, IMAGE],
  [
    /at most 0 (?:audio|video)|no endpoints found that support (?:input )?(?:audio|video)|(?:invalid value|unknown variant|unknown part type):? (?:input_audio|audio_url|input_video|video_url)\b/,
    RECORDED,
  ],
  [/content blocks are expected to be either text or image_url/, ['document', ...RECORDED]],
];

/** The whole request has too many bytes: with images, they are most of it. */
const WHOLE =
  /request_too_large|request exceeds the maximum|exceeded limit on max bytes to request body|payload size exceeds|(?:request|payload|body)(?: entity)? (?:is )?too large/;

/** The request has images that it may not have. */
const UNSEEN = [
  /(?:image|vision|multimodal|multi-modal)s?(?:_url)?\b.{0,60}\b(?:not supported|unsupported|not support|only supported by)/,
  /(?:does not|doesnt|do not|cannot|not able to) (?:support|accept|handle|process|read|take) .{0,40}(?:image|vision|multimodal)/,
  /no endpoints found that support image/,
  /unknown variant image_url/,
  /not a (?:multimodal|vision) model/,
  /at most 0 images?/,
  /invalid content type\. image_url/,
];
/**
 * The model takes no images, whatever the request. Only a message that says so and adds no condition teaches it: others
 * are about a format, an address, a role, or how many.
 */
const BLIND =
  /(?:\bimage inputs? (?:is|are) not supported|model does not support (?:image inputs?|images?|vision))(?= ?(?:$|[-.,;:!(]|by this|for this))|no endpoints found that support image input|unknown variant image_url|not a (?:multimodal|vision) model|at most 0 images?|image_url is only supported by certain models/;

/** How many characters of an error message are read. */
const READ = 4000;
const QUOTES = /[`'"“”‘’]/g;

const plain = (text: string): string => text.slice(0, READ).replace(QUOTES, '').toLowerCase();

const wordsOf = ({ message, code }: GatewayError): string =>
  `${plain(message)} ${plain(code ?? '')}`;

/** Statuses with which vendors refuse what they were sent. llama.cpp answers 500 or 501, vLLM 500, OpenRouter 404. */
const MAY_REFUSE: ReadonlySet<number> = new Set([400, 404, 413, 415, 422, 500, 501]);

/** Statuses that say something of the key or of the moment, never of the request. */
const NOT_THE_REQUEST: ReadonlySet<number> = new Set([401, 403, 429]);

/** Does the vendor say that this model accepts no images? */
export const refusesImages = (error: GatewayError): boolean => {
  if (!error.fromUpstream || NOT_THE_REQUEST.has(error.status)) return false;
  const words = wordsOf(error);
  return UNSEEN.some((pattern) => pattern.test(words));
};

const PLACE =
  /(?:messages|input)[.[](\d{1,6})\]?\.content[.[](\d{1,6})\]?(?:\.tool_result\.content\.(\d{1,6}))?/;
/** Of Responses, where a result is an item by itself. */
const IN_OUTPUT = /input\[(\d{1,6})\]\.output\[(\d{1,6})\]/;

function placeIn(words: string): MediaPlace | undefined {
  const [, item, part] = IN_OUTPUT.exec(words) ?? [];
  if (item !== undefined && part !== undefined) return { message: +item, block: 0, inner: +part };
  const [, message, block, inner] = PLACE.exec(words) ?? [];
  if (message === undefined || block === undefined) return undefined;
  return { message: +message, block: +block, inner: inner === undefined ? undefined : +inner };
}

/** The refusal of media in an error answer. Sources: test/features/refusal-retry/media.test.ts. */
export function refusedMedia(error: GatewayError): MediaRefusal | undefined {
  const { fromUpstream, status, kind } = error;
  if (!fromUpstream || !MAY_REFUSE.has(status) || kind === 'content_filter') return undefined;
  const words = wordsOf(error);
  const at = placeIn(words);
  for (const [pattern, of, media] of LIMITS) {
    const most = pattern.exec(words)?.[1];
    if (most !== undefined) return { kind: 'media', media, at, limit: { of, most: +most } };
  }
  for (const [pattern, media] of UNREADABLE) {
    if (pattern.test(words)) return { kind: 'media', media, at };
  }
  // Groq: Request too large for model … on tokens per minute (TPM)
  if (WHOLE.test(words) && !words.includes('token')) {
    return { kind: 'media', media: ANY, older: true };
  }
  if (BLIND.test(plain(error.message).trim()))
    return { kind: 'media', media: IMAGE, facts: { images: false } };
  return UNSEEN.some((pattern) => pattern.test(words))
    ? { kind: 'media', media: IMAGE, at }
    : undefined;
}

/** Does the request have what would be left out for this refusal? */
export function hasRefusedMedia({ turns }: Conversation, { media, older }: MediaRefusal): boolean {
  const holding = turns.filter(({ blocks }) => blocks.some((block) => holdsMedia(block, media)));
  return holding.length > (older === true ? 1 : 0);
}

/** Is this such a block, or does it hold one? */
const holdsMedia = (block: Block, media: MediaRefusal['media']): boolean =>
  block.type === 'media'
    ? media.includes(block.media)
    : innerBlocks(block).some((inner) => holdsMedia(inner, media));
