/** The bundled files of the page, in a module of their own so that they are loaded with the first visit. */

import { bundlePage } from './bundle-page.ts' with { type: 'macro' };

/** Text by file name: `index.html`, `index-<hash>.js`, `index-<hash>.css`. */
export const PAGE_FILES: Readonly<Record<string, string>> = bundlePage();
