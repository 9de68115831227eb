/** Renders inline Markdown to HTML: code, emphasis, links, pictures. */

import { escapeHtml } from './escape.ts';

/** The address of a link target; undefined: the link stays text. */
export type Resolve = (target: string) => string | undefined;

// Code comes first, because nothing inside code is markup.
const PIECES =
  /(`+)([\s\S]*?[^`])\1(?!`)|!\[([^\]]*)\]\(([^()\s]*)\)|\[((?:`[^`]*`|[^\]])*)\]\(([^()\s]*)\)|\*\*([\s\S]+?)\*\*|\*([^*\s][^*]*)\*|\\([\\`*_[\]()#|<>-])/g;

/** HTML for a line of text; everything that is not markup is escaped. */
export function inline(text: string, resolve: Resolve): string {
  let out = '';
  let from = 0;
  for (const match of text.matchAll(PIECES)) {
    out += escapeHtml(text.slice(from, match.index));
    out += piece(match, resolve);
    from = match.index + match[0].length;
  }
  return out + escapeHtml(text.slice(from));
}

function piece(match: RegExpExecArray, resolve: Resolve): string {
  const [whole, , code, alt, picture, label, target, strong, emphasis, escaped] = match;
  if (code !== undefined) return `<code>${escapeHtml(code.trim())}</code>`;
  if (picture !== undefined) {
    const source = resolve(picture);
    return source === undefined
      ? escapeHtml(alt ?? '')
      : `<img src="${escapeHtml(source)}" alt="${escapeHtml(alt ?? '')}">`;
  }
  if (target !== undefined) {
    const address = resolve(target);
    const words = inline(label ?? '', resolve);
    return address === undefined ? words : `<a href="${escapeHtml(address)}">${words}</a>`;
  }
  if (strong !== undefined) return `<strong>${inline(strong, resolve)}</strong>`;
  // A star behind a blank closes nothing.
  if (emphasis !== undefined && !/\s$/.test(emphasis))
    return `<em>${inline(emphasis, resolve)}</em>`;
  return escapeHtml(escaped ?? whole);
}
