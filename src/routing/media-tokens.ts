/** Estimates the tokens of images and documents from their sizes, by the vendors' documented rules. */

import type { MediaBlock, MediaSource, ProtocolName } from '../conversation/types.ts';
import { estimatedTokens } from '../conversation/usage.ts';
import { imageHeader } from '../lib/bytes/image-header.ts';

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
  if (media === 'audio' || media === 'video') return 0;
  if (media === 'document') return documentTokens(source);
  const claude = protocol === 'anthropic-messages' || model.startsWith('claude');
  const size = source.type === 'base64' ? imageHeader(source.data) : undefined;
  // Not an image of a kind that vendors accept.
  if (source.type === 'base64' && size === undefined) return 0;
  return claude ? claudeTokens(size) : openaiTokens(size, block.detail);
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
