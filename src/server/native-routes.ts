/** Routes that Bun's own router matches, taken from an Elysia plugin that declares them. */

import type { AnyElysia } from 'elysia';
import type { Answer, Routes } from '../lib/http/routes.ts';

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
