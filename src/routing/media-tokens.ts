/** Estimates the tokens of images and documents from their sizes, by the vendors' documented rules. */

import type { MediaBlock, MediaSource, ProtocolName } from '../conversation/types.ts';
import { estimatedTokens } from '../conversation/usage.ts';

/** Width and height in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Base64 characters of an image that are read: its size is near the beginning, in JPEG after the camera's metadata. */
const HEAD = 262_144;
/** Bytes of a PDF in which pages are counted. */
const PDF_BYTES = 4_194_304;
/** Tokens of one page of a PDF: its text, and an image of it. */
const PAGE = 2000;
/** Bytes of a page, for a PDF in which none can be counted. */
const PAGE_BYTES = 75_000;

/** The tokens of one block. A model named `claude…` has Anthropic's rule, any other that of the client's protocol. */
export function estimateMedia(block: MediaBlock, protocol: ProtocolName, model: string): number {
  const { source, media } = block;
  if (media === 'audio') return 0;
  if (media === 'document') return documentTokens(source);
  const claude = protocol === 'anthropic-messages' || model.startsWith('claude');
  const size = source.type === 'base64' ? imageSize(source.data) : undefined;
  // Not an image of a kind that vendors accept.
  if (source.type === 'base64' && size === undefined) return 0;
  return claude ? claudeTokens(size) : openaiTokens(size, block.detail);
}

/**
 * Width × height / 750, after scaling down to at most 1568 pixels a side; at most 1,600 tokens.
 * @see https://docs.anthropic.com/en/docs/build-with-claude/vision#calculate-image-costs
 */
function claudeTokens(size: ImageSize | undefined): number {
  if (size === undefined) return 1600;
  const scale = Math.min(1, 1568 / Math.max(size.width, size.height));
  return Math.min(1600, Math.ceil((size.width * scale * (size.height * scale)) / 750));
}

/**
 * 85, and 170 for each tile of 512 × 512 pixels, after scaling down to at most 2048 pixels a side and 768 on
 * the shorter one.
 * @see https://platform.openai.com/docs/guides/images-vision#calculating-costs
 */
function openaiTokens(size: ImageSize | undefined, detail: string | undefined): number {
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

/** The size in the header of a PNG, JPEG, GIF or WebP; undefined for anything else. */
export function imageSize(base64: string): ImageSize | undefined {
  const head = Buffer.from(base64.slice(0, 64), 'base64');
  if (head.length >= 24 && head.readUInt32BE(0) === 0x89504e47) {
    return sized(head.readUInt32BE(16), head.readUInt32BE(20));
  }
  if (head.length >= 10 && head.toString('latin1', 0, 4) === 'GIF8') {
    return sized(head.readUInt16LE(6), head.readUInt16LE(8));
  }
  if (head.length >= 30 && head.toString('latin1', 8, 12) === 'WEBP') return webpSize(head);
  if (head[0] !== 0xff || head[1] !== 0xd8) return undefined;
  return jpegSize(Buffer.from(base64.slice(0, HEAD), 'base64'));
}

const sized = (width: number, height: number): ImageSize | undefined =>
  width > 0 && height > 0 ? { width, height } : undefined;

/** https://developers.google.com/speed/webp/docs/riff_container: lossy, lossless, extended. */
function webpSize(bytes: Buffer): ImageSize | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return sized(bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff);
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return sized((bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1);
    }
    case 'VP8X':
      return sized(bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1);
    default:
      return undefined;
  }
}

/** Reads segment by segment up to the start of frame (SOF). */
function jpegSize(bytes: Buffer): ImageSize | undefined {
  let at = 2;
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const kind = bytes[at + 1]!;
    const isStartOfFrame =
      kind >= 0xc0 && kind <= 0xcf && kind !== 0xc4 && kind !== 0xc8 && kind !== 0xcc;
    if (isStartOfFrame) return sized(bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5));
    // Fill bytes before a marker.
    if (kind === 0xff) at++;
    else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
