/** The path of a request, read without its host, which may be no host at all. */

import { percentDecoded } from '../lib/text/printable-text.ts';

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

/** A path under another name, and the model that it has in front of it. */
export interface MendedPath {
  readonly path: string;
  readonly deployment?: string;
}

/**
 * Azure's paths: `/openai/deployments/MODEL/…`, `/openai/v1/…`, and the latter with an `api-version` instead of `v1`; and
 * Gemini's for clients of OpenAI, `/v1beta/openai/…` (https://ai.google.dev/gemini-api/docs/openai).
 */
const AZURE = /^\/(?:v1(?:beta)?\/)?openai\/(?:deployments\/([^/]+)\/|v1\/)?/;

/**
 * What is meant where a base URL was written with one slash or `/v1` too many: `//v1/models`, `/v1/v1/models`; and
 * where a client of Azure asks (learn.microsoft.com/azure/ai-foundry/openai/reference), or one of Gemini by OpenAI's API. Undefined: the path has
 * neither.
 */
export function mendedPath(path: string): MendedPath | undefined {
  const azure = path.includes('/openai/');
  if (!azure && !path.includes('//') && !path.startsWith('/v1/v1/')) return undefined;
  const plain = path.replace(/\/{2,}/g, '/').replace(/^\/v1\/v1\//, '/v1/');
  const found = azure ? AZURE.exec(plain) : null;
  if (found === null) return plain === path ? undefined : { path: plain };
  const [front, model] = found;
  const rest = `/v1/${plain.slice(front.length)}`;
  return model === undefined ? { path: rest } : { path: rest, deployment: percentDecoded(model) };
}
