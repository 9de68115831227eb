/** What can be asked for, by path: for the words and the shape of an answer where nothing is found. */

/** Path and methods; `:x` stands for one part, `*` for any rest. */
const ENDPOINTS: readonly (readonly [path: string, ...methods: string[]])[] = [
  ['/v1/chat/completions', 'POST'],
  ['/chat/completions', 'POST'],
  ['/v1/responses', 'POST'],
  ['/responses', 'POST'],
  ['/v1/responses/input_tokens', 'POST'],
  ['/v1/responses/:id', 'GET', 'DELETE'],
  ['/v1/responses/:id/cancel', 'POST'],
  ['/v1/responses/:id/input_items', 'GET'],
  ['/v1/alpha/search', 'POST'],
  ['/v1/messages', 'POST'],
  ['/messages', 'POST'],
  ['/v1/messages/count_tokens', 'POST'],
  ['/messages/count_tokens', 'POST'],
  ['/v1/models', 'GET'],
  ['/models', 'GET'],
  ['/v1/models/*', 'GET'],
  ['/models/*', 'GET'],
  ['/v1/memory', 'GET'],
  ['/v1/memory/openapi.json', 'GET'],
  ['/v1/memory/:space', 'DELETE'],
  ['/v1/memory/:space/events', 'GET', 'POST'],
  ['/v1/memory/:space/events/:id', 'GET', 'PATCH', 'DELETE'],
  ['/v1/memory/:space/recall', 'POST'],
  ['/v1/memory/:space/export', 'GET'],
  ['/healthz', 'GET'],
  ['/readyz', 'GET'],
  ['/metrics', 'GET'],
  ['/docs', 'GET'],
  ['/docs/*', 'GET'],
  ['/ui', 'GET'],
  ['/', 'GET'],
];

/** What `GET /` and the words of a 404 name. */
export const KNOWN_ENDPOINTS: readonly string[] = [
  'POST /v1/chat/completions',
  'POST /v1/responses',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'GET /v1/models',
  'GET /healthz',
  'GET /readyz',
  'GET /metrics',
  'GET /docs',
  'GET /ui',
];

// Of the vendor's API beside `/v1/responses/ID`: a path of its own, and no id.
const NO_IDS = new Set(['/v1/responses/compact']);

/** The methods that a path takes; undefined for a path that is none. */
export function methodsAt(path: string): readonly string[] | undefined {
  const parts = partsOf(path);
  const plain = `/${parts.join('/')}`;
  if (NO_IDS.has(plain)) return undefined;
  const found = ENDPOINTS.find(([known]) => fits(partsOf(known), parts));
  return found?.slice(1);
}

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
  /^\/(?:v1\/)?(?:assistants|audio|batches|chat|completions|conversations|embeddings|evals|files|fine_tuning|images|moderations|realtime|rerank|responses|threads|uploads|vector_stores|videos)(?:\/|$)/;
const ANTHROPIC = /^\/(?:v1\/)?(?:messages|complete)(?:\/|$)/;

/** Whose API a path is part of; undefined where both have it, or none. */
export function apiOf(path: string): 'openai' | 'anthropic' | undefined {
  if (ANTHROPIC.test(path)) return 'anthropic';
  return OPENAI.test(path) ? 'openai' : undefined;
}
