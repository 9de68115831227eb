/** The door of this room: the manual as pages over HTTP and as something to search. */

import type { FullText, Searchable } from '../lib/text/full-text.ts';
import { searchManual, sectionPath } from './search.ts';

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

/** The manual as a search engine: one item is one section of a page. */
export function docsIndex(listen: ListenAddress): FullText<DocsHit> {
  const base = baseUrl(listen);
  return {
    search: (query, count) =>
      searchManual(query, count).map((section) => ({
        url: `${base}${sectionPath(section)}`,
        // A model that asked the web should see what it was given.
        title: `hopgate manual: ${section.title}`,
        text: section.text,
      })),
  };
}
