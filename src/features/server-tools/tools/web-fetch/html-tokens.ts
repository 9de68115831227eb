/** Splits HTML into tags and text, in linear time; and what elements mean for the text of a page. */

import { readEntities } from '../../../../lib/http/html-entities.ts';
import { wordSet } from '../../../../lib/text/words.ts';

export type Attributes = ReadonlyMap<string, string>;

export type HtmlToken =
  /** Text with its character references unresolved. */
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'open'; readonly name: string; readonly attributes: Attributes }
  /** An element whose content is text without tags. */
  | { readonly type: 'raw'; readonly name: string; readonly text: string }
  | { readonly type: 'close'; readonly name: string };

/** Elements whose content is plain text up to their end tag. */
const RAW = wordSet('script style textarea title xmp iframe noembed noframes');
/** Text comes in pieces of this length, so that no single step takes long. */
const PIECE = 16_384;
/** Attributes of an element that are read, and characters of a name. */
const MAX_ATTRIBUTES = 64;
const MAX_NAME = 64;
/** A longer tag is not a real one: it is skipped up to the next ">". */
const MAX_TAG = 65_536;

const TAG = /<[a-zA-Z/!?]/g;
/** Sticky: where no tag begins, a search would read on to the next tag, however far. */
const TAG_HERE = /<[a-zA-Z/!?]/y;
const NAME_END = /[\s/>]/g;
const SPACE = /[\s/]/;
const ATTRIBUTE_END = /[\s/>=]/g;

/**
 * Reads a page from its beginning. Invalid HTML is read as browsers read it, as far as text and tags are
 * concerned.
 * @see https://html.spec.whatwg.org/multipage/parsing.html#tokenization
 */
export class HtmlTokens {
  #at = 0;

  constructor(private readonly html: string) {}

  /** Characters read so far. */
  get at(): number {
    return this.#at;
  }

  next(): HtmlToken | undefined {
    while (this.#at < this.html.length) {
      TAG_HERE.lastIndex = this.#at;
      const token = TAG_HERE.test(this.html) ? this.#markup() : this.#text();
      if (token !== undefined) return token;
    }
    return undefined;
  }

  #text(): HtmlToken {
    const from = this.#at;
    // Searches only within one piece: repeated searches for the same far tag would not be linear.
    const window = this.html.slice(from, from + PIECE + 1);
    TAG.lastIndex = 0;
    const tag = TAG.exec(window);
    const text = window.slice(0, tag?.index ?? PIECE);
    this.#at += text.length;
    return { type: 'text', text };
  }

  #markup(): HtmlToken | undefined {
    const html = this.html;
    const second = html[this.#at + 1]!;
    if (second === '!' || second === '?') return this.#skip();
    if (second !== '/') return this.#open();
    if (!/[a-zA-Z]/.test(html[this.#at + 2] ?? '')) return this.#skip();
    const name = this.#name(this.#at + 2);
    this.#skipPast('>');
    return { type: 'close', name };
  }

  /** Skips comments, doctypes and instructions. */
  #skip(): undefined {
    this.#skipPast(this.html.startsWith('<!--', this.#at) ? '-->' : '>');
  }

  #skipPast(mark: string): void {
    const end = this.html.indexOf(mark, this.#at);
    this.#at = end < 0 ? this.html.length : end + mark.length;
  }

  #name(from: number): string {
    NAME_END.lastIndex = from;
    const end = NAME_END.exec(this.html)?.index ?? this.html.length;
    this.#at = end;
    return this.html.slice(from, Math.min(end, from + MAX_NAME)).toLowerCase();
  }

  #open(): HtmlToken | undefined {
    const name = this.#name(this.#at + 1);
    const attributes = this.#attributes();
    if (!RAW.has(name)) return { type: 'open', name, attributes };
    const from = this.#at;
    const close = new RegExp(`</${name}(?=[\\s/>])`, 'gi');
    close.lastIndex = from;
    const end = close.exec(this.html)?.index ?? this.html.length;
    this.#at = end;
    if (end < this.html.length) this.#skipPast('>');
    return { type: 'raw', name, text: this.html.slice(from, Math.min(end, from + PIECE)) };
  }

  #attributes(): Attributes {
    const html = this.html;
    const found = new Map<string, string>();
    for (const most = this.#at + MAX_TAG; ; ) {
      if (this.#at > most) {
        this.#skipPast('>');
        return found;
      }
      while (this.#at <= most && this.#at < html.length && SPACE.test(html[this.#at]!)) this.#at++;
      if (this.#at > most) continue;
      if (this.#at >= html.length) return found;
      if (html[this.#at] === '>') {
        this.#at++;
        return found;
      }
      const from = this.#at;
      // A name may begin with "=".
      ATTRIBUTE_END.lastIndex = from + 1;
      this.#at = ATTRIBUTE_END.exec(html)?.index ?? html.length;
      const name = html.slice(from, Math.min(this.#at, from + MAX_NAME)).toLowerCase();
      const value = this.#value();
      if (found.size < MAX_ATTRIBUTES && !found.has(name)) found.set(name, value);
    }
  }

  /** The value after "=", which may have blanks around it. */
  #value(): string {
    const html = this.html;
    const most = Math.min(html.length, this.#at + MAX_TAG);
    let at = this.#at;
    while (at < most && /\s/.test(html[at]!)) at++;
    if (html[at] !== '=') return '';
    at++;
    while (at < most && /\s/.test(html[at]!)) at++;
    const quote = html[at];
    if (quote === '"' || quote === "'") {
      const end = html.indexOf(quote, at + 1);
      this.#at = end < 0 ? html.length : end + 1;
      return html.slice(at + 1, end < 0 ? html.length : end);
    }
    const bare = /[\s>]/g;
    bare.lastIndex = at;
    this.#at = bare.exec(html)?.index ?? html.length;
    return html.slice(at, this.#at);
  }
}

/** Elements without content of the page: hidden ones and the site's boilerplate. */
export const BOILERPLATE = wordSet(
  'noscript template svg canvas object nav footer aside dialog button select math',
);
const BOILERPLATE_ROLES = wordSet('navigation banner contentinfo search dialog');
export const VOID = wordSet('area base br col embed hr img input link meta param source track wbr');
export const BLOCKS = wordSet(`
  address article blockquote body caption center dd details div dl dt fieldset figcaption figure footer form
  h1 h2 h3 h4 h5 h6 head header hgroup html legend li main menu ol option p pre section summary
  table tbody td tfoot th thead tr ul`);
type ImpliedEnds = readonly [ended: readonly string[], walls: readonly string[]];
const CELLS: ImpliedEnds = [
  ['td', 'th'],
  ['tr', 'table'],
];
const SECTIONS: ImpliedEnds = [['tbody', 'thead', 'tfoot'], ['table']];
/** By the name of a start tag: the open elements that it ends, and the elements that stop the search for them. */
export const IMPLIED_ENDS: Readonly<Record<string, ImpliedEnds>> = {
  li: [['li'], ['ul', 'ol', 'menu']],
  dt: [['dt', 'dd'], ['dl']],
  dd: [['dt', 'dd'], ['dl']],
  tr: [['tr'], ['table']],
  td: CELLS,
  th: CELLS,
  tbody: SECTIONS,
  thead: SECTIONS,
  tfoot: SECTIONS,
};
/** An end tag inside one of these ends no element outside of it. */
export const SCOPE_LIMITS = wordSet('td th li dd table');
export const OPTIONAL_END = wordSet('p li dt dd tr td th tbody thead option');
/** The end tags of these end every element that is open inside. */
export const CONTAINERS = wordSet(
  'table tr tbody thead tfoot td th ul ol menu dl main article body html li dd',
);

const MAX_ADDRESS = 4096;

/** Is the element hidden from readers, or boilerplate by its role? */
export function isHidden(attributes: Attributes): boolean {
  if (attributes.size === 0) return false;
  return (
    attributes.has('hidden') ||
    attributes.get('aria-hidden') === 'true' ||
    BOILERPLATE_ROLES.has(attributes.get('role') ?? '')
  );
}

/** The absolute URL; undefined for an address that cannot be fetched. */
export function absoluteUrl(value: string | undefined, base: string): string | undefined {
  if (value === undefined || value.length > MAX_ADDRESS) return undefined;
  const url = readEntities(value).trim();
  if (/^(?:data|javascript|blob|vbscript):/i.test(url)) return undefined;
  const found = URL.canParse(url, base) ? new URL(url, base).href : undefined;
  return found === undefined || found.length > MAX_ADDRESS ? undefined : found;
}
