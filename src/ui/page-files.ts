/** The files of the page as the bundler left them; a module of its own, so that it is loaded with the first visit. */

import { bundlePage } from './bundle-page.ts' with { type: 'macro' };

/** Text by file name: `index.html`, `index-<hash>.js`, `index-<hash>.css`. */
export const PAGE_FILES: Readonly<Record<string, string>> = bundlePage();
