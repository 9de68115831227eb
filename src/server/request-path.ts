/** The path of a request, read without its host, which may be no host at all. */

/** `/v1/models?limit=1` of `http://host/v1/models?limit=1`, or of a target that is a path alone. */
export function targetOf(url: string): string {
  if (url.startsWith('/')) return url;
  const scheme = url.indexOf('://');
  const slash = url.indexOf('/', scheme < 0 ? 0 : scheme + 3);
  return slash < 0 ? '/' : url.slice(slash);
}

/** The path alone, as it was sent. */
export function pathOf(url: string): string {
  const target = targetOf(url);
  const end = target.search(/[?#]/);
  return end < 0 ? target : target.slice(0, end);
}

/** A URL with the same path and query, whatever host was named. */
export const localUrl = (url: string): URL => new URL(`http://localhost${targetOf(url)}`);

/**
 * What is meant where a base URL was written with one slash or `/v1` too many: `//v1/models`, `/v1/v1/models`.
 * Undefined: the path has no such mistake.
 */
export function mendedPath(path: string): string | undefined {
  if (!path.includes('//') && !path.startsWith('/v1/v1/')) return undefined;
  return path.replace(/\/{2,}/g, '/').replace(/^\/v1\/v1\//, '/v1/');
}
