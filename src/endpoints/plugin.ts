/** The routes of the endpoints beside the protocols: embeddings, completions, rerank, moderations, images, audio. */

import { Elysia } from 'elysia';
import { RAW, type RequestContext } from '../lib/http/routes.ts';
import { ENDPOINTS, type Endpoint } from './endpoint.ts';

export interface EndpointsPluginOptions {
  /** Answers a request to this endpoint; never rejects. */
  readonly serveEndpoint: (request: Request, endpoint: Endpoint) => Promise<Response>;
}

/** `POST` to each path, with and without `/v1`. */
export function endpointsPlugin({ serveEndpoint }: EndpointsPluginOptions) {
  const app = new Elysia({ name: 'endpoints' });
  for (const endpoint of ENDPOINTS) {
    const serve = ({ request }: RequestContext) => serveEndpoint(request, endpoint);
    app.post(`/v1${endpoint.path}`, serve, RAW).post(endpoint.path, serve, RAW);
  }
  return app;
}
