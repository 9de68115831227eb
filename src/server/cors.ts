/** Lets pages of the origins in `listen.cors` read answers (https://fetch.spec.whatwg.org/#http-cors-protocol). */

import type { Listen } from '../config/sections/listen.ts';
import { percentDecoded } from '../lib/text/printable-text.ts';
import { mendedPath, pathOf } from './request-path.ts';
import { type Answerer, type App, through } from './server.ts';

/** A browser asks again after so many seconds; none keeps an answer for longer. */
const MAX_AGE_S = '7200';
const METHODS = 'GET, POST, PATCH, DELETE';

// What clients of the four protocols send. Browsers themselves add everything else.
const ALLOWED =
  /^(?:authorization|content-type|accept|cache-control|idempotency-key|originator|traceparent|tracestate|baggage|session[-_]id|conversation[-_]id|thread[-_]id|http-referer|x-title|(?:x-)?api-key|x-app|x-(?:client-)?request-id|x-session-id|(?:anthropic|openai|x-stainless|x-goog|x-hopgate|x-codex|x-claude-code)-.+)$/;
const EXPOSED =
  /^(?:retry-after(?:-ms)?|(?:x-)?request-id|x-should-retry|www-authenticate|allow|(?:anthropic|openai|x-ratelimit|x-hopgate|x-goog|x-codex)-.+)$/;
const MAX_NAMES = 100;
const MAX_CHARS = 8192;

// The page and the admin API are for their own origin alone.
const OWN = /^\/(?:ui|admin)(?:\/|$)/i;

export class Cors {
  /** Undefined: no page of another origin may read anything. */
  #origins: ReadonlySet<string> | undefined;

  constructor(listen: Pick<Listen, 'cors'>) {
    this.configure(listen);
  }

  configure({ cors }: Pick<Listen, 'cors'>): void {
    this.#origins = cors && new Set(cors);
  }

  /** The same application, whose answers pages of these origins may read. */
  around(app: App): App {
    const shared: Answerer = (answer) => (request) => {
      const origins = this.#origins;
      if (origins === undefined) return answer(request);
      const origin = request.headers.get('origin');
      if (origin === null || isOwn(request.url)) return answer(request);
      const allowed = origins.has('*') ? '*' : origins.has(origin) ? origin : undefined;
      if (allowed !== undefined && isPreflight(request)) return preflight(request, allowed);
      return withOrigin(answer(request), allowed);
    };
    return { ...through(app, shared), connections: app.connections, sockets: app.sockets };
  }
}

function isOwn(url: string): boolean {
  const path = pathOf(url);
  return OWN.test(mendedPath(path)?.path ?? path) || OWN.test(percentDecoded(path));
}

const isPreflight = ({ method, headers }: Request): boolean =>
  method === 'OPTIONS' && headers.has('access-control-request-method');

function preflight({ headers }: Request, allowed: string): Response {
  const asked = (headers.get('access-control-request-headers') ?? '').slice(0, MAX_CHARS);
  const names = asked.toLowerCase().split(',', MAX_NAMES);
  const may = names.map((name) => name.trim()).filter((name) => ALLOWED.test(name));
  const answer = new Headers({
    'access-control-allow-origin': allowed,
    'access-control-allow-methods': METHODS,
    'access-control-max-age': MAX_AGE_S,
    vary: 'origin, access-control-request-headers',
  });
  if (may.length > 0) answer.set('access-control-allow-headers', may.join(', '));
  return new Response(null, { status: 204, headers: answer });
}

async function withOrigin(
  answer: ReturnType<ReturnType<Answerer>>,
  allowed: string | undefined,
): Promise<Awaited<typeof answer>> {
  const response = await answer;
  if (response === undefined) return undefined;
  const { headers } = response;
  headers.append('vary', 'origin');
  if (allowed === undefined) return response;
  headers.set('access-control-allow-origin', allowed);
  const exposed = [...headers.keys()].filter((name) => EXPOSED.test(name));
  if (exposed.length > 0) headers.set('access-control-expose-headers', exposed.join(', '));
  return response;
}
