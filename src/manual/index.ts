import type { FullText, Searchable } from '../lib/text/full-text.ts';
import { searchManual, sectionPath } from './search.ts';

export { docsPage } from './docs-page.ts';

export interface DocsHit extends Searchable {
  /** The URL of the section on this server. */
  readonly url: string;
}

/** The address that the server listens on. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** With any value the server speaks HTTPS. */
  readonly tls?: unknown;
}

/** `http://127.0.0.1:5520/docs`: a URL that this machine can open. */
function baseUrl({ host, port, tls }: ListenAddress): string {
  const any = host === '0.0.0.0' || host === '::';
  const name = any ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `${tls === undefined ? 'http' : 'https'}://${name}:${port}/docs`;
}

/** The manual as a search engine: one item is one section of a page. */
export function docsIndex(listen: ListenAddress): Pick<FullText<DocsHit>, 'search'> {
  const base = baseUrl(listen);
  return {
    search: (query, count) =>
      searchManual(query, count).map((section) => ({
        url: `${base}${sectionPath(section)}`,
        // The model searched the web; the title shows that this hit is from the manual.
        title: `hopgate manual: ${section.title}`,
        text: section.text,
      })),
  };
}
