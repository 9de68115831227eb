/** Converts a fetched body to text for a model: HTML to Markdown, PDFs to text, plain formats unchanged. */

import { readFileSync } from 'node:fs';
import type { OpaqueBlock } from '../../../../conversation/types.ts';
import { readUpTo } from '../../../../lib/http/read-up-to.ts';
import type { Fetched } from '../../../../lib/http/safe-fetch.ts';
import { type JsonObject, tryParse } from '../../../../lib/json/json.ts';
import { limitParallel } from '../../../../lib/loop/limit-parallel.ts';
import { ownProgram, PDF_READER } from '../../../../lib/process/own-program.ts';
import type { PdfResult } from '../../../../lib/process/pdf-reader.ts';
import { ToolError } from '../../tool.ts';
import { htmlToMarkdown } from './html-to-markdown.ts';

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

type PdfText = Omit<FetchedPage, 'url'>;

/** Pages of one document that are read at most. */
const MAX_PAGES = 300;
/** Milliseconds that one document may take. */
const MAX_MS = 15_000;
/** Resident bytes of a helper. A compressed page can unfold to gigabytes. */
const MAX_RSS_BYTES = 768 * 1024 * 1024;
const LOOK_MS = 50;
const PAGE_BYTES = 4096;

/** Each helper takes about a core and 100 MB. */
const limited = limitParallel(2);

/**
 * @param enough characters after which no further page is read
 * @throws ToolError for a document that cannot be read, the signal's reason
 */
export function pdfText(bytes: Uint8Array, enough: number, cutOff: boolean, signal: AbortSignal) {
  return limited(() => read(bytes, enough, cutOff, signal));
}

async function read(
  bytes: Uint8Array,
  enough: number,
  cutOff: boolean,
  signal: AbortSignal,
): Promise<PdfText> {
  signal.throwIfAborted();
  const child = Bun.spawn([...ownProgram(PDF_READER), String(MAX_PAGES), String(enough)], {
    stdin: bytes,
    stdout: 'pipe',
    stderr: 'ignore',
    env: {},
    timeout: MAX_MS,
    killSignal: 'SIGKILL',
    signal,
  });
  let tooLarge = false;
  const looking = setInterval(() => {
    if (residentBytes(child.pid) <= MAX_RSS_BYTES) return;
    tooLarge = true;
    child.kill('SIGKILL');
  }, LOOK_MS);
  try {
    const { bytes: out } = await readUpTo(child.stdout, enough * 8 + 1_000_000);
    child.kill('SIGKILL');
    await child.exited;
    signal.throwIfAborted();
    return textOf(tryParse(Buffer.from(out).toString()) as PdfResult | undefined, cutOff, tooLarge);
  } finally {
    clearInterval(looking);
  }
}

function textOf(found: PdfResult | undefined, cutOff: boolean, tooLarge: boolean): PdfText {
  if (found === undefined) {
    throw unreadable(tooLarge ? 'needs too much memory' : 'takes too long to read');
  }
  if ('error' in found) {
    if (found.error === 'password') throw unreadable('needs a password');
    throw unreadable(cutOff ? 'is larger than what is read of a page' : 'is broken');
  }
  const { title, text, pages, read: done } = found;
  const remark =
    text === ''
      ? 'The document has no text; its pages may be pictures.'
      : done < pages && done === MAX_PAGES
        ? `Only the first ${MAX_PAGES} of ${pages} pages are read.`
        : undefined;
  return { title, text, truncated: done < pages && done < MAX_PAGES, remark };
}

const unreadable = (why: string) =>
  new ToolError(`The PDF document ${why}.`, { code: 'unsupported_content_type' });

/** 0 where the system does not say; the time limit alone holds there. */
function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

export interface FetchedPage {
  readonly url: string;
  readonly title: string;
  readonly text: string;
  /** There are more characters than are wanted, or more than were read. */
  readonly truncated: boolean;
  /** A remark about a page with little text. */
  readonly remark?: string | undefined;
}

/**
 * The content of a `web_fetch_tool_result`.
 * @param at ISO 8601 time of the fetch
 * @see https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-fetch-tool
 */
export function webFetchResult(page: FetchedPage, at: string, citations = false): JsonObject {
  return {
    type: 'web_fetch_result',
    url: page.url,
    content: {
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: page.text },
      ...(page.title === '' ? {} : { title: page.title }),
      ...(citations ? { citations: { enabled: true } } : {}),
    },
    retrieved_at: at,
  };
}

/** The block to which that content decodes, for {@link ToolOutcome.shown}. */
export function webFetchBlock(content: JsonObject, page: FetchedPage): OpaqueBlock {
  return {
    type: 'opaque',
    name: 'web_fetch_result',
    text: [page.url, page.title, page.text].filter((part) => part !== '').join('\n'),
    wire: { protocol: 'anthropic-messages', value: content },
  };
}
