/** The types of HTTP routes: a table of paths and methods, and the handler that answers in one protocol. */

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

/** Answers a request in the protocol of the codec. Never rejects. */
export type ProtocolHandler = (request: Request, codec: Codec) => Promise<Response>;
