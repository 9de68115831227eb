/** The server tool `web_fetch`: fetches a page from the public internet as Markdown, or a PDF as text. */

import {
  type Exceptions,
  parseExceptions,
  RefusedAddress,
  type UrlHost,
} from '../../../../lib/http/public-address.ts';
import { FetchFailed, type PublicFetch, publicFetch } from '../../../../lib/http/safe-fetch.ts';
import { isObject, type JsonObject } from '../../../../lib/json/json.ts';
import {
  type InjectMode,
  type ServerTool,
  type ToolContext,
  ToolError,
  type ToolOutcome,
} from '../../tool.ts';
import {
  acceptType,
  type FetchedPage,
  pageText,
  webFetchBlock,
  webFetchResult,
} from './page-text.ts';

export interface WebFetchOptions
  extends Pick<PublicFetch, 'timeoutMs' | 'maxBytes' | 'maxRedirects' | 'resolve' | 'ca'> {
  readonly inject: InjectMode;
  /** Characters of text that the model gets at a time. */
  readonly maxText: number;
  /** Hosts and address blocks that may be fetched although they are not public. */
  readonly allow: readonly string[];
  readonly maxUses?: number;
  readonly now?: () => Date;
}

const DESCRIPTION =
  'Fetches a web page by its URL and returns it as Markdown (text and JSON as they are, PDFs as text). ' +
  'Use it to read a page whose address you know. Long pages come in parts: call again with `start`.';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    url: { type: 'string', description: 'The absolute http(s) URL.' },
    start: {
      type: 'integer',
      minimum: 0,
      description: 'The character at which to continue a long page; 0 by default.',
    },
  },
  required: ['url'],
  additionalProperties: false,
};

/** Characters of an address in the text; the result block contains all of it. */
const MAX_ADDRESS = 1000;
const truncated = (text: string, length: number) =>
  text.length > length ? `${text.slice(0, length - 1)}…` : text;

/** The client's limit is in tokens, of about four characters each. */
const CHARACTERS_PER_TOKEN = 4;
const WANTED = /https?:\/\/\S/i;

export function webFetchTool(options: WebFetchOptions): ServerTool {
  const exceptions = parseExceptions(options.allow);
  return {
    name: 'web_fetch',
    aliases: ['fetch_url', 'webfetch'],
    hosted: 'web_fetch',
    description: DESCRIPTION,
    schema: SCHEMA,
    inject: options.inject,
    wanted: (text) => WANTED.test(text),
    limits: {
      timeoutMs: options.timeoutMs,
      ...(options.maxUses === undefined ? {} : { maxUses: options.maxUses }),
    },
    run: (args, context) => run(args, context, options, exceptions),
  };
}

async function run(
  args: JsonObject,
  context: ToolContext,
  options: WebFetchOptions,
  exceptions: Exceptions,
): Promise<ToolOutcome> {
  const { url } = args;
  if (typeof url !== 'string' || url.trim() === '') {
    throw new ToolError('web_fetch needs a "url".', { code: 'invalid_tool_input' });
  }
  const start = wholeNumber(args.start) ?? 0;
  const page = await fetchPage(url.trim(), start, context, options, exceptions);
  const at = (options.now?.() ?? new Date()).toISOString();
  const citations =
    isObject(context.options.citations) && context.options.citations.enabled === true;
  const result = webFetchResult(page, at, citations);
  const next = start + page.text.length;
  const tail = page.truncated
    ? `\n\n[The page continues; characters ${start} to ${next} are shown. Call web_fetch with "start": ${next} for more.]`
    : '';
  const title = page.title || truncated(page.url, MAX_ADDRESS);
  const remark =
    page.remark === undefined ? '' : `${page.text === '' ? '' : '\n\n'}[${page.remark}]`;
  const content = `${title}\nURL: ${truncated(page.url, MAX_ADDRESS)}\n\n${page.text}${remark}${tail}`;
  return {
    ok: true,
    payload: { url: page.url, title: page.title, text: page.text, truncated: page.truncated },
    text: context.wantsCitations === true ? (n) => `[${n}] ${content}` : content,
    sources: [{ url: page.url, title, text: page.text.slice(0, 500) }],
    shown: [webFetchBlock(result, page)],
    log: { url: page.url, characters: page.text.length, truncated: page.truncated },
  };
}

async function fetchPage(
  url: string,
  start: number,
  context: ToolContext,
  options: WebFetchOptions,
  exceptions: Exceptions,
): Promise<FetchedPage> {
  const cap = wholeNumber(context.options.max_content_tokens);
  const length = Math.min(options.maxText, (cap ?? Infinity) * CHARACTERS_PER_TOKEN);
  try {
    const fetched = await publicFetch(url, {
      exceptions,
      timeoutMs: options.timeoutMs,
      maxBytes: options.maxBytes,
      maxRedirects: options.maxRedirects,
      signal: context.signal,
      headers: { 'user-agent': 'hopgate web_fetch', accept: 'text/html, text/*;q=0.9, */*;q=0.5' },
      accept: acceptType,
      check: (place) => checkDomain(place, context.options),
      resolve: options.resolve,
      ca: options.ca,
    });
    const { title, text, truncated, remark } = await pageText(
      fetched,
      start + length,
      context.signal,
    );
    const shown = sliceText(text, start, start + length);
    const more = start + shown.length < text.length || (truncated && shown !== '');
    const shortTitle = title.slice(0, options.maxText).toWellFormed();
    return { url: fetched.url, title: shortTitle, text: shown, truncated: more, remark };
  } catch (thrown) {
    throw asToolError(thrown);
  }
}

/** A part of a text that does not end inside a surrogate pair. */
function sliceText(text: string, from: number, to: number): string {
  return text.slice(from, to).toWellFormed() === text.slice(from, to)
    ? text.slice(from, to)
    : text.slice(from, to - 1);
}

/**
 * Checks the client's `allowed_domains` and `blocked_domains`: hosts with their subdomains, perhaps a path.
 * @throws ToolError url_not_allowed
 */
function checkDomain({ url, host }: UrlHost, options: JsonObject): void {
  const hits = (list: unknown) =>
    Array.isArray(list) &&
    list.some((entry) => {
      if (typeof entry !== 'string') return false;
      const [domain = '', ...path] = entry
        .toLowerCase()
        .replace(/^https?:\/\//, '')
        .split('/');
      const inside = host === domain || host.endsWith(`.${domain}`);
      return inside && url.pathname.toLowerCase().startsWith(`/${path.join('/')}`);
    });
  const { allowed_domains: allowed, blocked_domains: blocked } = options;
  const closed = Array.isArray(allowed) && allowed.length > 0 && !hits(allowed);
  if (closed || hits(blocked)) {
    throw new ToolError(`The client does not allow ${host} to be fetched.`, {
      code: 'url_not_allowed',
    });
  }
}

function asToolError(thrown: unknown): unknown {
  if (thrown instanceof RefusedAddress) {
    return new ToolError(`Not fetched: ${thrown.message}.`, { code: 'url_not_allowed' });
  }
  if (thrown instanceof FetchFailed) {
    const { message, retryable } = thrown;
    return new ToolError(`Not fetched: ${message}.`, { code: 'url_not_accessible', retryable });
  }
  return thrown;
}

function wholeNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
