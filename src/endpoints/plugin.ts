/** The routes of the endpoints beside the protocols: embeddings, completions, rerank, moderations, images, audio, files, batches. */

import { Elysia } from 'elysia';
import { RAW, type RequestContext } from '../lib/http/routes.ts';
import { OPERATIONS, type Operation } from './batches/operations.ts';
import { ENDPOINTS, type Endpoint } from './endpoint.ts';

export interface EndpointsPluginOptions {
  /** Answers a request to this endpoint; never rejects. */
  readonly serveEndpoint: (request: Request, endpoint: Endpoint) => Promise<Response>;
  /** The same for files and batches; `id` is '' where the path has none. */
  readonly serveOperation: (
    request: Request,
    operation: Operation,
    id: string,
  ) => Promise<Response>;
}

/** `POST` to each path, with and without `/v1`. */
export function endpointsPlugin({ serveEndpoint, serveOperation }: EndpointsPluginOptions) {
  const app = new Elysia({ name: 'endpoints' });
  for (const endpoint of ENDPOINTS) {
    const serve = ({ request }: RequestContext) => serveEndpoint(request, endpoint);
    const { path, otherPaths = [] } = endpoint;
    for (const own of [`/v1${path}`, path, ...otherPaths]) app.post(own, serve, RAW);
  }
  for (const operation of OPERATIONS) {
    const { method, path } = operation;
    const serve = ({ request, params }: RequestContext & { params: { readonly id?: string } }) =>
      serveOperation(request, operation, params.id ?? '');
    for (const own of [`/v1${path}`, path]) {
      if (method === 'GET') app.get(own, serve);
      else if (method === 'DELETE') app.delete(own, serve);
      else app.post(own, serve, RAW);
    }
  }
  return app;
}
