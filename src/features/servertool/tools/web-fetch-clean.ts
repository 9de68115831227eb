/** Cuts a page down to what is worth reading, in one streaming pass, and into pieces that convert fast. */

import { readEntities } from '../../../lib/html-entities.ts';

export interface CleanPage {
  readonly title: string;
  /** HTML of the content, cut where a block begins; no piece is much longer than asked. */
  readonly pieces: readonly string[];
}

// What is never content, or is the site's furniture around it.
const FURNITURE =
  'script,style,noscript,template,svg,canvas,iframe,object,embed,nav,footer,aside,dialog,button,' +
  'select,input,textarea,[hidden],[aria-hidden="true"],[role="navigation"],[role="banner"],' +
  '[role="contentinfo"],[role="search"],[role="dialog"]';
const BREAKS = 'h1,h2,h3,h4,h5,h6,p,div,section,article,ul,ol,dl,table,pre,blockquote,figure,hr';
/** Inside these a cut would tear something. */
const WHOLE = 'ul,ol,dl,table,pre,blockquote,a,figure';
/** Elements that HTML closes by itself: an end tag tells nothing about their depth. */
const OPEN_ENDED = new Set(['p', 'li', 'dt', 'dd', 'tr', 'td', 'th', 'tbody', 'thead', 'option']);
/** Deeper than any real page; conversion takes quadratic time in depth. */
const MAX_DEPTH = 60;
/** Below this a `<main>` or `<article>` is a shell that scripts would have filled. */
const MIN_CONTENT = 200;

/**
 * Removes scripts, navigation and the like, keeps the inside of `<main>` (or of the only
 * `<article>`) where there is one with text in it, and makes links absolute.
 */
export function cleanPage(html: string, url: string, pieceLength: number): CleanPage {
  // Marks that a page cannot forge.
  const mark = crypto.randomUUID();
  const cut = `<!--${mark}-->`;
  const [open, close] = [`<!--${mark}<-->`, `<!--${mark}>-->`];
  let base = url;
  let title = '';
  let titles = 0;
  let whole = 0;
  let depth = 0;
  const absolute = (name: string) => ({
    element(element: HTMLRewriterTypes.Element) {
      const value = element.getAttribute(name);
      if (value === null) return;
      if (/^\s*(?:data|javascript|blob):/i.test(value)) element.removeAttribute(name);
      else if (URL.canParse(value, base)) element.setAttribute(name, new URL(value, base).href);
    },
  });
  const mains = html.match(/<main[\s>]/gi)?.length ?? 0;
  const articles = html.match(/<article[\s>]/gi)?.length ?? 0;
  const core = mains > 0 ? 'main' : articles === 1 ? 'article' : undefined;
  const rewriter = new HTMLRewriter()
    .on('base[href]', {
      element(element) {
        const value = element.getAttribute('href')!;
        if (URL.canParse(value, url)) base = new URL(value, url).href;
      },
    })
    .on('title', {
      element() {
        titles++;
      },
      text(chunk) {
        // Pictures have titles of their own, and pages leave out their head.
        if (titles === 1) title += chunk.text;
      },
    })
    .on('head', {
      element(element) {
        // Not before its title was read: text handlers still run inside removed elements.
        element.remove();
      },
    })
    .on('*', {
      element(element) {
        if (OPEN_ENDED.has(element.tagName) || !element.canHaveContent) return;
        if (depth >= MAX_DEPTH) element.removeAndKeepContent();
        depth++;
        element.onEndTag(() => {
          depth--;
        });
      },
      comments(comment) {
        comment.remove();
      },
    })
    .on(FURNITURE, {
      element(element) {
        element.remove();
      },
    })
    .on(BREAKS, {
      element(element) {
        if (whole === 0) element.before(cut, { html: true });
      },
    })
    .on(WHOLE, {
      element(element) {
        if (!element.canHaveContent) return;
        whole++;
        element.onEndTag(() => {
          whole = Math.max(0, whole - 1);
        });
      },
    })
    .on('a[href]', absolute('href'))
    .on('img[src]', absolute('src'));
  if (core !== undefined) {
    rewriter.on(core, {
      element(element) {
        if (!element.canHaveContent) return;
        element.prepend(open, { html: true });
        element.append(close, { html: true });
      },
    });
  }
  const clean = rewriter.transform(html);
  return { title: textOf(title), pieces: piecesOf(coreOf(clean, open, close), cut, pieceLength) };
}

/** What stands between the marks, where that is more than a shell; else everything. */
function coreOf(html: string, open: string, close: string): string {
  const from = html.indexOf(open);
  const to = html.lastIndexOf(close);
  if (from < 0 || to < from) return html;
  const inner = html.slice(from + open.length, to);
  return textOf(inner).length >= MIN_CONTENT
    ? inner.replaceAll(open, '').replaceAll(close, '')
    : html;
}

function piecesOf(html: string, cut: string, length: number): readonly string[] {
  const pieces: string[] = [];
  let piece = '';
  for (const part of html.split(cut)) {
    if (piece.length > 0 && piece.length + part.length > length) {
      pieces.push(piece);
      piece = '';
    }
    piece += part;
  }
  if (piece.length > 0) pieces.push(piece);
  // A page that is one endless list or table: cut at the next tag, whatever that tears.
  return pieces.flatMap((one) => (one.length > 4 * length ? chop(one, 2 * length) : [one]));
}

function chop(text: string, length: number): readonly string[] {
  const out: string[] = [];
  for (let from = 0; from < text.length; ) {
    const tag = text.indexOf('<', from + length);
    const to = tag < 0 || tag > from + 2 * length ? from + length : tag;
    out.push(text.slice(from, to));
    from = to;
  }
  return out;
}

/** The words of a piece of HTML: tags cut out, entities read, space folded. */
export function textOf(html: string): string {
  return readEntities(html.replace(/<[^>]{0,4096}>/g, ' '))
    .replace(/\s+/g, ' ')
    .trim();
}
