/** HTML elements by their meaning for the text of a page. */

import { readEntities } from '../../../../lib/http/html-entities.ts';
import type { Attributes } from './html-tokens.ts';

/** Elements without content of the page: hidden ones and the site's boilerplate. */
export const BOILERPLATE = new Set([
  ...['noscript', 'template', 'svg', 'canvas', 'object', 'nav', 'footer', 'aside', 'dialog'],
  ...['button', 'select', 'math'],
]);
const BOILERPLATE_ROLES = new Set(['navigation', 'banner', 'contentinfo', 'search', 'dialog']);
export const VOID = new Set([
  ...['area', 'base', 'br', 'col', 'embed', 'hr', 'img', 'input', 'link', 'meta', 'param'],
  ...['source', 'track', 'wbr'],
]);
export const BLOCKS = new Set([
  ...[
    'address',
    'article',
    'blockquote',
    'body',
    'caption',
    'center',
    'dd',
    'details',
    'div',
    'dl',
  ],
  ...['dt', 'fieldset', 'figcaption', 'figure', 'form', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'head'],
  ...['header', 'hgroup', 'html', 'legend', 'li', 'main', 'menu', 'ol', 'option', 'p', 'pre'],
  ...['section', 'summary', 'table', 'tbody', 'td', 'tfoot', 'th', 'thead', 'tr', 'ul', 'footer'],
]);
/** By the name of a start tag: the open elements that it ends, and the elements that stop the search for them. */
export const IMPLIED_ENDS: Readonly<
  Record<string, readonly [readonly string[], readonly string[]]>
> = {
  li: [['li'], ['ul', 'ol', 'menu']],
  dt: [['dt', 'dd'], ['dl']],
  dd: [['dt', 'dd'], ['dl']],
  tr: [['tr'], ['table']],
  td: [
    ['td', 'th'],
    ['tr', 'table'],
  ],
  th: [
    ['td', 'th'],
    ['tr', 'table'],
  ],
  tbody: [['tbody', 'thead', 'tfoot'], ['table']],
  thead: [['tbody', 'thead', 'tfoot'], ['table']],
  tfoot: [['tbody', 'thead', 'tfoot'], ['table']],
};
/** An end tag inside one of these ends no element outside of it. */
export const SCOPE_LIMITS = new Set(['td', 'th', 'li', 'dd', 'table']);
export const OPTIONAL_END = new Set([
  'p',
  'li',
  'dt',
  'dd',
  'tr',
  'td',
  'th',
  'tbody',
  'thead',
  'option',
]);
/** The end tags of these end every element that is open inside. */
export const CONTAINERS = new Set([
  'table',
  'tr',
  'tbody',
  'thead',
  'tfoot',
  'td',
  'th',
  'ul',
  'ol',
  'menu',
  'dl',
  'main',
  'article',
  'body',
  'html',
  'li',
  'dd',
]);

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
