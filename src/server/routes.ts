/** What a server answers by path and method, and how a request is handed to the gateway. */

import type { Codec } from '../codecs/codec.ts';

/** A request to a path with named parts: `/v1/responses/:id`. */
export interface RoutedRequest extends Request {
  readonly params: Readonly<Record<string, string>>;
}

/** Handlers by path and method. They never reject. */
export type Routes = Readonly<
  Record<
    string,
    Readonly<
      Partial<
        Record<'GET' | 'POST' | 'DELETE', (request: RoutedRequest) => Response | Promise<Response>>
      >
    >
  >
>;

/** Hands a request to the gateway; never rejects. */
export type Serve = (request: Request, codec: Codec) => Promise<Response>;

/** What a handler of an Elysia route is given here. */
export interface RequestContext {
  readonly request: Request;
}

/** The body stays unread: the handler reads it as bytes, bounded. */
export const RAW = { parse: 'none' } as const;
