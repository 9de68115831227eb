/** The bundled page, in a module of its own so that it is loaded with the first visit. */

import { bundlePage } from './bundle-page.ts' with { type: 'macro' };

/** HTML. */
export const PAGE: string = bundlePage();
