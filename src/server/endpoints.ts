/** The known endpoints by path, for the text and the shape of 404 answers. */

import { OPERATIONS } from '../endpoints/batches/operations.ts';
import { ENDPOINTS } from '../endpoints/endpoint.ts';
import { suggest } from '../lib/text/did-you-mean.ts';

/** A route as a router declares it: `:x` stands for one part, `*` for any rest. */
export interface Route {
  readonly path: string;
  readonly method: string;
}

/** What `GET /` and the words of a 404 name. */
export const KNOWN_ENDPOINTS: readonly string[] = [
  'POST /v1/chat/completions',
  'POST /v1/responses',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'POST /v1beta/models/MODEL:generateContent',
  'POST /v1beta/models/MODEL:streamGenerateContent',
  'POST /v1beta/models/MODEL:countTokens',
  'POST /v1beta/models/MODEL:embedContent',
  'POST /v1beta/models/MODEL:batchEmbedContents',
  'GET /v1/models',
  'GET /v1beta/models',
  ...ENDPOINTS.map(({ path }) => `POST /v1${path}`),
  ...OPERATIONS.filter(({ path }) => !path.includes(':')).map(
    ({ method, path }) => `${method} /v1${path}`,
  ),
  'GET /v1/usage',
  'GET /v1/memory',
  'GET /admin/v1/keys',
  'GET /healthz',
  'GET /readyz',
  'GET /health/targets',
  'GET /health/engines',
  'GET /metrics',
  'GET /docs',
  'GET /ui',
];

/** The endpoint that was probably meant: one with something in front of its path, or with a slip in it. */
export function nearestEndpoint(method: string, path: string): string | undefined {
  const parts = partsOf(path);
  // A single part is near to anything.
  if (parts.length < 2) return undefined;
  const written = anyModel(`/${parts.join('/')}`);
  const same = KNOWN_ENDPOINTS.filter((known) => known.startsWith(`${method} `));
  const paths = same.map((known) => known.slice(method.length + 1));
  const found =
    paths.find((known) => written.endsWith(known)) ?? suggest(written, paths.filter(hasTwoParts));
  return found === undefined ? undefined : `${method} ${found}`;
}

/** The path with MODEL for the name of a model before a method: `/v1beta/models/MODEL:countTokens`. */
function anyModel(path: string): string {
  const at = path.indexOf(MODELS);
  const colon = path.lastIndexOf(':');
  return at < 0 || colon < at ? path : `${path.slice(0, at)}${MODELS}MODEL${path.slice(colon)}`;
}

const MODELS = '/models/';

const hasTwoParts = (path: string): boolean => partsOf(path).length > 1;

// Endpoints of a vendor that are refused with a message, and paths of the page's API: no method helps.
const NO_METHODS = /^\/(?:v1\/conversations(?:\/|$)|ui\/.)/;

const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'];

/** The methods that a path takes; undefined for a path that none of the routes has. */
export function methodsAt(routes: readonly Route[], path: string): readonly string[] | undefined {
  const parts = partsOf(path);
  if (NO_METHODS.test(`/${parts.join('/')}`)) return undefined;
  let best: string | undefined;
  for (const { path: known } of routes) {
    if (!fits(partsOf(known), parts)) continue;
    if (best === undefined || openParts(known) < openParts(best)) best = known;
  }
  if (best === undefined) return undefined;
  const methods = routes.flatMap(({ path, method }) => (path === best ? [method] : []));
  return METHODS.filter((method) => methods.includes(method));
}

/** How many parts of a route's path stand for anything. */
const openParts = (path: string): number =>
  partsOf(path).filter((part) => /^[:*]/.test(part)).length;

// More parts than any endpoint has are one rest.
const partsOf = (path: string): readonly string[] =>
  path.slice(0, 2000).replace(/^\//, '').replace(/\/$/, '').split('/', 20);

function fits(known: readonly string[], parts: readonly string[]): boolean {
  for (let i = 0; i < known.length; i++) {
    const part = parts[i];
    if (part === undefined) return false;
    if (known[i] === '*') return part !== '';
    if (part !== known[i] && !(known[i]!.startsWith(':') && part !== '')) return false;
  }
  return known.length === parts.length;
}

const OPENAI =
  /^\/(?:openai\/(?:deployments\/[^/]+\/)?)?(?:v1\/)?(?:assistants|audio|batches|chat|chatkit|completions|containers|conversations|embeddings|evals|fine_tuning|images|moderations|realtime|rerank|responses|threads|uploads|vector_stores|videos)(?:\/|$)/;
const ANTHROPIC = /^\/(?:v1\/)?(?:messages|complete)(?:\/|$)/;

// Google's versions and Vertex' resources.
const GOOGLE =
  /^\/(?:upload\/)?(?:v1beta1?|v1alpha)(?:\/|$)|^\/v1\/(?:projects|publishers)(?:\/|$)/;
/** Behind the colon stands what is to be done; in what is only read, it is a part of the name (`qwen3:latest`). */
const GOOGLE_METHOD = /^\/v1\/models\/[^?#]*:[a-zA-Z]+$/;

/** Whose API a path is part of; undefined where several have it, or none. */
export function apiOf(
  path: string,
  method = 'POST',
): 'openai' | 'anthropic' | 'google' | undefined {
  if (GOOGLE.test(path) || (method === 'POST' && GOOGLE_METHOD.test(path))) return 'google';
  if (ANTHROPIC.test(path)) return 'anthropic';
  return OPENAI.test(path) ? 'openai' : undefined;
}
