/** Everything that is served beside the protocols: the page, the memory, the manual, metrics, models, and what is not found. */

import { Elysia } from 'elysia';
import { docsPage } from './docs/index.ts';
import { type MemoryPluginOptions, memoryPlugin } from './features/memory/plugin.ts';
import { type AppOptions, commonRoutes } from './http/app.ts';
import type { Ui } from './ui/index.ts';
import { uiPlugin } from './ui/plugin.ts';

export interface OtherRoutesOptions extends Omit<AppOptions, 'docs'> {
  readonly ui: Pick<Ui, 'answer'>;
  readonly memory: MemoryPluginOptions;
}

export function otherRoutes({ ui, memory, ...common }: OtherRoutesOptions) {
  // The path of a request may begin behind a host of any length.
  const app = new Elysia({ handler: { standardHostname: false } })
    .use(uiPlugin(ui))
    .use(memoryPlugin(memory))
    .use(commonRoutes({ ...common, docs: docsPage }));
  return { fetch: async (request: Request) => app.fetch(request) };
}
