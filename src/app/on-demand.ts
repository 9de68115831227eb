/** Everything that is served beside the protocols: the page, the memory, the manual, metrics, models, and what is not found. */

import { Elysia } from 'elysia';
import { type MemoryPluginOptions, memoryPlugin } from '../features/memory/api/plugin.ts';
import { docsPage } from '../manual/index.ts';
import { type AboutRoutesOptions, aboutRoutes, refusalOf } from '../server/about.ts';
import type { Ui } from '../ui/index.ts';
import { uiPlugin } from '../ui/plugin.ts';

export interface OtherRoutesOptions extends Omit<AboutRoutesOptions, 'docs'> {
  readonly ui: Pick<Ui, 'answer'>;
  readonly memory: MemoryPluginOptions;
}

export function otherRoutes({ ui, memory, ...about }: OtherRoutesOptions) {
  const options = { ...about, docs: docsPage };
  // The path of a request may begin behind a host of any length.
  const app = new Elysia({ handler: { standardHostname: false } })
    .use(uiPlugin(ui))
    .use(memoryPlugin(memory))
    .use(aboutRoutes(options));
  return {
    fetch: async (request: Request) => refusalOf(request, options) ?? app.fetch(request),
  };
}
