/** Routes by path and method, and what a handler of an Elysia route gets. */

/** A request to a path with named parts: `/v1/responses/:id`. */
export interface RoutedRequest extends Request {
  readonly params: Readonly<Record<string, string>>;
}

/** Undefined: the connection of the request has become a WebSocket. */
export type Answer = Response | undefined;

/** Handlers by path and method. They never reject. */
export type Routes = Readonly<
  Record<
    string,
    Readonly<
      Partial<
        Record<'GET' | 'POST' | 'DELETE', (request: RoutedRequest) => Answer | Promise<Answer>>
      >
    >
  >
>;

/** The part of Elysia's context that handlers use. */
export interface RequestContext {
  readonly request: Request;
}

/** The body stays unread: the handler reads it as bytes, bounded. */
export const RAW = { parse: 'none' } as const;
