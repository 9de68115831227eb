/** How plugins become routes: matched by the router of Bun, or loaded with their first request. */

import { type AnyElysia, Elysia } from 'elysia';
import type { Answer, Routes } from '../lib/http/routes.ts';
import { MadeOnce } from '../lib/loop/made-once.ts';
import type { ErrorResponses } from './errors.ts';

/**
 * Everything at `path` and under it goes to the plugin that `load` gives. What the plugin does not serve is
 * an error that names what it serves.
 */
export function onDemand(path: string, errors: ErrorResponses, load: () => Promise<AnyElysia>) {
  // Without free file descriptors a part of the program cannot be read.
  const loaded = new MadeOnce(() =>
    load().then((plugin) => {
      const app: AnyElysia = new Elysia({ handler: { standardHostname: false } })
        .onError(errors.handle(() => app.routes))
        .use(plugin);
      return app;
    }),
  );
  const answer = async ({ request }: { request: Request }) => (await loaded.get()).fetch(request);
  return new Elysia({ name: `on-demand ${path}` })
    .all(path, answer, { parse: 'none' })
    .all(`${path}/*`, answer, { parse: 'none' });
}

type Handler = (context: { request: Request; params: unknown }) => Answer | Promise<Answer>;

/**
 * The handlers of a plugin by path and method. A handler gets `request` and `params` and nothing else of
 * Elysia's context: the plugin must have no hooks, and its handlers must not reject.
 */
export function nativeRoutes(plugin: AnyElysia): Routes {
  const routes: Record<string, Record<string, Routes[string]['GET']>> = {};
  for (const { path, method, handler } of plugin.routes) {
    const handle = handler as Handler;
    routes[path] ??= {};
    routes[path][method] = (request) => handle({ request, params: request.params });
  }
  return routes;
}
