/** What images and documents come to in tokens, by their sizes and the vendors' documented rules. */

import type { MediaBlock, MediaSource, ProtocolName } from '../conversation/types.ts';

/** Width and height in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Bytes of an image that are looked at: sizes stand at the beginning, in JPEG behind what cameras add. */
const HEAD = 262_144;
/** Bytes of a PDF in which pages are counted. */
const PDF_BYTES = 4_194_304;
/** One page of a PDF: its text, and a picture of it. */
const PAGE = 2000;
/** Bytes of a page, where none can be counted. */
const PAGE_BYTES = 75_000;
const BYTES_PER_TOKEN = 4;

/** Which vendor's rule counts: that of the model where its name says so, else of the client's protocol. */
export function estimateMedia(block: MediaBlock, protocol: ProtocolName, model: string): number {
  const { source, media } = block;
  if (media === 'audio') return 0;
  if (media === 'document') return documentTokens(source);
  const claude = protocol === 'anthropic-messages' || model.startsWith('claude');
  const size = source.type === 'base64' ? imageSize(source.data) : undefined;
  // Bytes that are no image of a kind that vendors take.
  if (source.type === 'base64' && size === undefined) return 0;
  return claude ? claudeTokens(size) : openaiTokens(size, block.detail);
}

/**
 * Width × height / 750, of an image that is made smaller to 1568 pixels a side and about 1,600 tokens.
 * @see https://docs.anthropic.com/en/docs/build-with-claude/vision#calculate-image-costs
 */
function claudeTokens(size: ImageSize | undefined): number {
  if (size === undefined) return 1600;
  const scale = Math.min(1, 1568 / Math.max(size.width, size.height));
  return Math.min(1600, Math.ceil((size.width * scale * (size.height * scale)) / 750));
}

/**
 * 85, and 170 for each square of 512 pixels of an image that is made smaller to 2048 pixels a side and 768
 * on the shorter one.
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
  if (source.type === 'text') return Math.ceil(source.text.length / BYTES_PER_TOKEN);
  if (source.type !== 'base64') return PAGE;
  const { data, mediaType } = source;
  const bytes = Math.floor((data.length * 3) / 4);
  if (mediaType.startsWith('text/')) return Math.ceil(bytes / BYTES_PER_TOKEN);
  const text = Buffer.from(data.slice(0, (PDF_BYTES / 3) * 4), 'base64').toString('latin1');
  const pages = text.match(/\/Type ?\/Page(?![a-zA-Z])/g)?.length ?? 0;
  return PAGE * Math.max(1, pages === 0 ? Math.round(bytes / PAGE_BYTES) : pages);
}

/** The size that the head of a PNG, JPEG, GIF or WebP names; undefined for anything else. */
export function imageSize(base64: string): ImageSize | undefined {
  const few = Buffer.from(base64.slice(0, 64), 'base64');
  if (few.length >= 24 && few.readUInt32BE(0) === 0x89504e47) {
    return sized(few.readUInt32BE(16), few.readUInt32BE(20));
  }
  if (few.length >= 10 && few.toString('latin1', 0, 4) === 'GIF8') {
    return sized(few.readUInt16LE(6), few.readUInt16LE(8));
  }
  if (few.length >= 30 && few.toString('latin1', 8, 12) === 'WEBP') return webpSize(few);
  if (few[0] !== 0xff || few[1] !== 0xd8) return undefined;
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

/** Segment by segment up to the one that begins the picture (SOF). */
function jpegSize(bytes: Buffer): ImageSize | undefined {
  let at = 2;
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const kind = bytes[at + 1]!;
    const isFrame = kind >= 0xc0 && kind <= 0xcf && kind !== 0xc4 && kind !== 0xc8 && kind !== 0xcc;
    if (isFrame) return sized(bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5));
    // Fill bytes before a marker.
    if (kind === 0xff) at++;
    else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
