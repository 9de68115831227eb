/** The origin of this server as the client of a request knows it, behind TLS and proxies. */

const ORIGINS = new WeakMap<Request, string>();

/**
 * Gives a request another URL and Host. The URL begins with `http://` whatever the origin: Elysia looks for the path
 * from the seventh character on, which for `https://` is a slash of the scheme.
 * @param origin `https://gateway.example.com`
 */
export function setPublicOrigin(request: Request, origin: string): void {
  const { host } = new URL(origin);
  const { pathname, search } = new URL(request.url);
  ORIGINS.set(request, origin);
  if (request.headers.get('host') !== host) request.headers.set('host', host);
  Object.defineProperty(request, 'url', { value: `http://${host}${pathname}${search}` });
}

/** For links; of any other request that of its URL. */
export const publicOrigin = (request: Request): string =>
  ORIGINS.get(request) ?? new URL(request.url).origin;
