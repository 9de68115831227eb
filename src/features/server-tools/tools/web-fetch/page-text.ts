/** Converts a fetched body to text for a model: HTML to Markdown, PDFs to text, plain formats unchanged. */

import type { Fetched } from '../../../../lib/http/safe-fetch.ts';
import { ToolError } from '../../tool.ts';
import { htmlToMarkdown } from './html-to-markdown.ts';
import type { FetchedPage } from './messages-result.ts';
import { pdfText } from './pdf-text.ts';

export type PageText = Omit<FetchedPage, 'url'>;

export type PageBytes = Omit<Fetched, 'status'>;

const HTML = new Set(['text/html', 'application/xhtml+xml']);
const PLAIN =
  /^(?:text\/.*|application\/(?:.*\+)?(?:json|xml|yaml|x-yaml|javascript|ecmascript|x-ndjson|jsonl|toml|x-sh|sql|graphql))$/;

/** Types of servers that do not know better; the bytes decide. */
const UNKNOWN = new Set(['', 'application/octet-stream', 'binary/octet-stream']);
/** Characters: a shorter page with scripts gets a remark. */
const SHORT_PAGE = 200;

/**
 * Refuses content types that cannot be read as text, before the body is read. A missing type is accepted.
 * @throws ToolError unsupported_content_type
 */
export function acceptType(contentType: string): void {
  if (UNKNOWN.has(contentType) || HTML.has(contentType) || PLAIN.test(contentType)) return;
  if (contentType === 'application/pdf' || contentType === 'application/x-pdf') return;
  throw unsupported(contentType);
}

function unsupported(what: string): ToolError {
  return new ToolError(`This is ${what}; only HTML pages, text and PDFs can be read.`, {
    code: 'unsupported_content_type',
  });
}

/**
 * The text of a page, converted no further than `enough` characters.
 * @throws ToolError unsupported_content_type for bytes that are not text
 */
export async function pageText(
  page: PageBytes,
  enough: number,
  signal: AbortSignal,
): Promise<PageText> {
  const head = page.bytes.subarray(0, 1024);
  // The bytes decide, whatever the server says. Readers allow other bytes before the mark.
  const mark = Buffer.from(head).toString('latin1').indexOf('%PDF-');
  const isText = HTML.has(page.contentType) || PLAIN.test(page.contentType);
  if (mark === 0 || (mark > 0 && !isText)) {
    return pdfText(page.bytes, enough, page.truncated, signal);
  }
  if (page.contentType.endsWith('pdf')) throw unsupported('no PDF, although the server says so');
  const wide = bomOf(page.bytes) ?? page.charset;
  if (head.includes(0) && wide?.startsWith('utf-16') !== true) throw unsupported('a binary file');
  const source = decode(page);
  if (!isHtml(page.contentType, source)) {
    return { title: '', text: source.trim(), truncated: page.truncated };
  }
  const { title, text, whole, scripts } = await htmlToMarkdown(source, page.url, enough);
  const filled = scripts && text.length < SHORT_PAGE && whole && !page.truncated;
  const remark = filled
    ? 'Scripts produce the content of this page. They are not run here, so content may be missing.'
    : text === ''
      ? 'The page has no text.'
      : undefined;
  return { title, text, truncated: page.truncated || !whole, remark };
}

function isHtml(contentType: string, source: string): boolean {
  if (!UNKNOWN.has(contentType)) return HTML.has(contentType);
  return /^\s*<(?:!doctype html|html|head|body|!--)/i.test(source.slice(0, 512));
}

/** The encoding that the first bytes name. */
function bomOf([a, b, c]: Uint8Array): string | undefined {
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf-8';
  if (a === 0xff && b === 0xfe) return 'utf-16le';
  return a === 0xfe && b === 0xff ? 'utf-16be' : undefined;
}

/**
 * https://html.spec.whatwg.org/#determining-the-character-encoding, as far as pages in use need it.
 * @throws ToolError for binary data without a text type
 */
function decode({ bytes, charset, contentType, truncated }: PageBytes): string {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 2048));
  const declared = /<meta[^>]{1,1000}charset\s*=\s*["']?\s*([\w-]+)/i.exec(
    head.toString('latin1'),
  )?.[1];
  const marked = bomOf(bytes);
  for (const label of marked === undefined ? [charset, declared] : [marked]) {
    if (label === undefined) continue;
    try {
      return new TextDecoder(label as Bun.Encoding).decode(bytes);
    } catch {
      // An unknown label: try the next one.
    }
  }
  const text = new TextDecoder().decode(bytes);
  // The cut may have split the last character.
  const whole = truncated ? text.slice(0, -4) : text;
  if (contentType.endsWith('octet-stream') && whole.includes('\ufffd')) {
    throw unsupported('a binary file');
  }
  return text;
}
