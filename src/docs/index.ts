/** The door of this room: the manual as pages over HTTP and as something to search. */

import { type FullText, fullText, type Searchable } from '../lib/full-text.ts';
import { PAGES } from './pages.ts';
import { sectionsOf } from './sections.ts';

export { docsPage } from './docs-page.ts';

export interface DocsHit extends Searchable {
  /** Of the section, on this server. */
  readonly url: string;
}

/** Where the server listens, as the configuration says it. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** `http://127.0.0.1:5520/docs`: an address that the machine itself can open. */
function baseUrl({ host, port }: ListenAddress): string {
  const any = host === '0.0.0.0' || host === '::';
  const name = any ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}/docs`;
}

/**
 * The manual as a search engine. One item is one section of a page; the index is built on the first
 * search, so that a start pays nothing for it.
 */
export function docsIndex(listen: ListenAddress): FullText<DocsHit> {
  const base = baseUrl(listen);
  let index: FullText<DocsHit> | undefined;
  return {
    search(query, count) {
      index ??= fullText(
        PAGES.flatMap(sectionsOf).map(({ page, anchor, title, text }) => ({
          url: `${base}/${page}${anchor === '' ? '' : `#${anchor}`}`,
          // A model that asked the web should see what it was given.
          title: `hopgate manual: ${title}`,
          text,
        })),
      );
      return index.search(query, count);
    },
  };
}
