/** A fetched body as text for a model: HTML to Markdown piece by piece, plain formats as they are. */

import type Turndown from 'turndown';
import { ToolError } from '../tool.ts';
import { cleanPage, textOf } from './web-fetch-clean.ts';
import { addTableRules } from './web-fetch-tables.ts';

export interface PageText {
  readonly title: string;
  readonly text: string;
  /** There is more than `enough` characters, or more than was read. */
  readonly truncated: boolean;
}

export interface PageBytes {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly charset: string | undefined;
  readonly url: string;
  readonly truncated: boolean;
}

/** Characters of HTML converted at a time; between two pieces other requests get their turn. */
const PIECE = 32_768;
const HTML = new Set(['text/html', 'application/xhtml+xml']);
const PLAIN =
  /^(?:text\/.*|application\/(?:.*\+)?(?:json|xml|yaml|x-yaml|javascript|ecmascript|x-ndjson|jsonl|toml|x-sh|sql|graphql))$/;

/**
 * Refuses what is not text by its content type, before the body is read. No type at all passes.
 * @throws ToolError unsupported_content_type
 */
export function acceptType(contentType: string): void {
  if (contentType === '' || HTML.has(contentType) || PLAIN.test(contentType)) return;
  throw unsupported(contentType);
}

function unsupported(what: string): ToolError {
  return new ToolError(`This is ${what}; only HTML pages and text can be read.`, {
    code: 'unsupported_content_type',
  });
}

/**
 * The text of a page, converted no further than `enough` characters.
 * @throws ToolError unsupported_content_type for bytes that are no text
 */
export async function pageText(page: PageBytes, enough: number): Promise<PageText> {
  if (page.bytes.subarray(0, 1024).includes(0) && page.charset?.startsWith('utf-16') !== true) {
    throw unsupported('a binary file');
  }
  const source = decode(page);
  if (!isHtml(page.contentType, source)) {
    const text = source.trim();
    return { title: '', text, truncated: page.truncated };
  }
  const turndown = await loadTurndown();
  const { title, pieces } = cleanOrWhole(source, page.url);
  let text = '';
  let done = 0;
  for (; done < pieces.length && text.length <= enough; done++) {
    const markdown = convert(turndown, pieces[done]!);
    if (markdown !== '') text += text === '' ? markdown : `\n\n${markdown}`;
    if (done + 1 < pieces.length) await new Promise(setImmediate);
  }
  return { title, text, truncated: page.truncated || done < pieces.length };
}

function isHtml(contentType: string, source: string): boolean {
  if (contentType !== '') return HTML.has(contentType);
  return /^\s*<(?:!doctype html|html|head|body|!--)/i.test(source.slice(0, 512));
}

/** The rewriter refuses some broken pages; those are converted with everything in them. */
function cleanOrWhole(source: string, url: string) {
  try {
    return cleanPage(source, url, PIECE);
  } catch {
    return { title: '', pieces: [source.slice(0, 4 * PIECE)] };
  }
}

function convert(turndown: Turndown, html: string): string {
  try {
    return turndown.turndown(html).trim();
  } catch {
    // Too deep for a recursive converter: its words at least.
    return textOf(html);
  }
}

/** https://html.spec.whatwg.org/#determining-the-character-encoding, as far as pages in use need it. */
function decode({ bytes, charset }: PageBytes): string {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 2048));
  const declared = /<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)/i.exec(head.toString('latin1'))?.[1];
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  for (const label of marked ? ['utf-8'] : [charset, declared]) {
    if (label === undefined) continue;
    try {
      return new TextDecoder(label as Bun.Encoding).decode(bytes);
    } catch {
      // A label nobody knows: the next guess.
    }
  }
  return new TextDecoder().decode(bytes);
}

let loaded: Promise<Turndown> | undefined;

/** Loaded when first needed: the converter and its DOM would slow every start. */
function loadTurndown(): Promise<Turndown> {
  loaded ??= import('turndown').then(({ default: Service }) => configured(new Service(STYLE)));
  return loaded;
}

const STYLE = {
  headingStyle: 'atx',
  hr: '---',
  bulletListMarker: '-',
  codeBlockStyle: 'fenced',
  emDelimiter: '*',
} as const;

function configured(turndown: Turndown): Turndown {
  turndown.remove(['script', 'style', 'noscript', 'title', 'head' as 'title']);
  // Images without an address (data: URLs were cut) say nothing beyond their words.
  turndown.addRule('image', {
    filter: 'img',
    replacement: (_content, node) => {
      const image = node as unknown as { getAttribute(name: string): string | null };
      const alt = (image.getAttribute('alt') ?? '').replace(/\s+/g, ' ').trim();
      const src = image.getAttribute('src') ?? '';
      return src === '' ? alt : alt === '' ? '' : `![${alt}](${src})`;
    },
  });
  addTableRules(turndown);
  return turndown;
}
