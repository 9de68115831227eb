/** Loads a plugin with its first request, to keep the start fast. */

import { type AnyElysia, Elysia } from 'elysia';
import type { ErrorResponses } from './errors.ts';

/**
 * Everything at `path` and under it goes to the plugin that `load` gives. What the plugin does not serve is
 * an error that names what it serves.
 */
export function onDemand(path: string, errors: ErrorResponses, load: () => Promise<AnyElysia>) {
  let loaded: Promise<AnyElysia> | undefined;
  const loadApp = () =>
    load().then((plugin) => {
      const app: AnyElysia = new Elysia({ handler: { standardHostname: false } })
        .onError(errors.handle(() => app.routes))
        .use(plugin);
      return app;
    });
  const answer = async ({ request }: { request: Request }) => {
    loaded ??= loadApp().catch((thrown) => {
      // The next request tries again: without free file descriptors a part of the program cannot be read.
      loaded = undefined;
      throw thrown;
    });
    return (await loaded).fetch(request);
  };
  return new Elysia({ name: `on-demand ${path}` })
    .all(path, answer, { parse: 'none' })
    .all(`${path}/*`, answer, { parse: 'none' });
}
