/** The admin API, `/admin/v1`: keys made at run time, the audit, and what was used and spent. */

import { Elysia } from 'elysia';
import { asGatewayError, GatewayError, invalid } from '../conversation/errors.ts';
import type { ChangeRequest, KeyChanges, KeyView } from '../keys/key-changes.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import type { Json, JsonObject } from '../lib/json/json.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import { ifMatch, objectIn, queryOf, wholeNumber } from './request-parts.ts';

/** Answers a report by the query of its request; @throws GatewayError invalid_request, … */
export type Report = (query: URLSearchParams) => Response | Promise<Response>;

export interface AdminOptions {
  /** Who asks, for the audit. @throws GatewayError as `Admins.check` */
  readonly admin: (headers: ReadonlyHeaders) => string;
  readonly keys: KeyChanges;
  /** The keys of the configuration, as the API shows them: here they are read only. */
  readonly configured: () => readonly ConfiguredKeyView[];
  /** By the last part of their paths: `usage`, `spend`, `budgets`. */
  readonly reports: Readonly<Record<string, Report>>;
  /** A request failed by no fault of its own; for the log. */
  readonly onFailure: (error: GatewayError) => void;
  /** The address of the client, as far as it is asked for. */
  readonly address: (request: Request) => string | undefined;
  /** A key was changed; for the log. */
  readonly onChange: (change: {
    readonly actor: string;
    readonly action: string;
    readonly key: string;
    readonly key_name: string;
  }) => void;
}

export interface ConfiguredKeyView extends JsonObject {
  readonly id: string;
}

interface Context {
  readonly request: Request;
  readonly params?: Readonly<Record<string, string | null>>;
}

interface Asked extends ChangeRequest {
  readonly id: string;
  readonly request: Request;
}

/** Entries of one page. */
const PAGE = 100;
const MAX_ON_PAGE = 1000;
const NOTHING =
  'GET or POST /admin/v1/keys, GET, PATCH or DELETE /admin/v1/keys/ID, POST /admin/v1/keys/ID/rotate, GET /admin/v1/audit';
const UNPARSED = { parse: 'none' } as const;

export function adminPlugin(options: AdminOptions) {
  const { keys, reports, onChange } = options;

  /** Checks the key first: without one, nothing of the API shows. Never rejects. */
  const answer =
    (work: (asked: Asked) => Response | Promise<Response>) =>
    async ({ request, params }: Context): Promise<Response> => {
      try {
        const actor = options.admin(request.headers);
        return await work({
          actor,
          address: options.address(request),
          request,
          id: params?.id ?? '',
          idempotencyKey: idempotencyKeyOf(request.headers),
          version: ifMatch(request.headers.get('if-match')),
        });
      } catch (thrown) {
        const error = asGatewayError(thrown);
        if (error.status >= 500) options.onFailure(error);
        return failure(error);
      }
    };

  /** A change of one key, which is one of those made at run time. */
  const changing = (action: string, work: (asked: Asked) => Promise<Answered>) =>
    answer(async (asked) => {
      refuseConfigured(asked.id);
      const { status, view, key } = await work(asked);
      onChange({ actor: asked.actor, action, key: view.id, key_name: String(view.name) });
      const body = key === undefined ? view : { ...view, key };
      return json(body, status, { etag: `"${view.version}"` });
    });

  const configured = (id: string) => options.configured().find((one) => one.id === id);
  const refuseConfigured = (id: string) => {
    if (configured(id) === undefined) return;
    throw new GatewayError('conflict', 'This key is one of the configuration: change it there.', {
      code: 'configured_key',
    });
  };

  const app = new Elysia({ name: 'admin', seed: options, prefix: '/admin/v1' })
    .get(
      '/keys',
      answer(async ({ request }) => {
        const query = queryOf(request, ['after', 'limit', 'revoked', 'search']);
        const after = query.get('after') ?? undefined;
        const limit = wholeNumber(query, 'limit', PAGE, MAX_ON_PAGE);
        const revoked = flagOf(query, 'revoked');
        const search = query.get('search') ?? undefined;
        const page = await keys.list({ after, limit, revoked, search });
        const own = page.keys.map((key) => ({ ...key, source: 'admin' }));
        const fixed = options.configured().filter((key) => isAbout(key, search));
        const all = after === undefined ? [...fixed, ...own] : own;
        return json({ data: all, has_more: page.next !== undefined, next: page.next ?? null });
      }),
    )
    .post(
      '/keys',
      changing('key.create', async (asked) => {
        const issued = await keys.create(await objectIn(asked.request), asked);
        return { status: 201, ...issued };
      }),
      UNPARSED,
    )
    .get(
      '/keys/:id',
      answer(async ({ id }) => {
        const fixed = configured(id);
        if (fixed !== undefined) return json(fixed);
        const view = await keys.get(id);
        return json({ ...view, source: 'admin' }, 200, { etag: `"${view.version}"` });
      }),
    )
    .patch(
      '/keys/:id',
      changing('key.update', async (asked) => {
        const body = await objectIn(asked.request);
        return { status: 200, view: await keys.update(asked.id, body, asked) };
      }),
      UNPARSED,
    )
    .delete(
      '/keys/:id',
      changing('key.revoke', async (asked) => {
        return { status: 200, view: await keys.revoke(asked.id, asked) };
      }),
      UNPARSED,
    )
    .post(
      '/keys/:id/rotate',
      changing('key.rotate', async (asked) => {
        const body = await objectIn(asked.request);
        return { status: 201, ...(await keys.rotate(asked.id, body, asked)) };
      }),
      UNPARSED,
    )
    .get(
      '/audit',
      answer(async ({ request }) => {
        const query = queryOf(request, ['before', 'key', 'limit']);
        const limit = wholeNumber(query, 'limit', PAGE, MAX_ON_PAGE);
        const before = query.has('before')
          ? wholeNumber(query, 'before', 1, Number.MAX_SAFE_INTEGER)
          : undefined;
        const target = query.get('key') ?? undefined;
        const found = await keys.audit({ before, target, limit: limit + 1 });
        const data = found
          .slice(0, limit)
          .map((entry) => ({ ...entry, time: new Date(entry.time).toISOString() }));
        const more = found.length > limit;
        return json({ data, has_more: more, next: more ? data.at(-1)!.seq : null });
      }),
    )
    .get(
      '/audit/verify',
      answer(async ({ request }) => {
        queryOf(request, []);
        const { count, head, fault } = await keys.verifyAudit();
        return json({
          valid: fault === undefined,
          entries: count,
          head,
          fault: fault?.message ?? null,
        });
      }),
    );
  for (const [name, report] of Object.entries(reports)) {
    app.get(
      `/${name}`,
      answer(({ request }) => report(new URL(request.url).searchParams)),
    );
  }
  return app.all(
    '/*',
    answer(({ request }) => {
      const shown = printableLine(new URL(request.url).pathname, 200);
      const message = `There is nothing at ${request.method} ${shown}. There is ${[NOTHING, ...Object.keys(reports).map((name) => `GET /admin/v1/${name}`)].join(', ')}.`;
      throw new GatewayError('not_found', message, { code: 'unknown_path' });
    }),
    UNPARSED,
  );
}

const isAbout = (key: ConfiguredKeyView, search = '') =>
  JSON.stringify(key).toLowerCase().includes(search.toLowerCase());

interface Answered {
  readonly status: number;
  readonly view: KeyView;
  readonly key?: string;
}

// Answers may hold a key.
const PRIVATE = { 'content-type': 'application/json', 'cache-control': 'no-store' };

const json = (value: Json | object, status = 200, more: Readonly<Record<string, string>> = {}) =>
  new Response(JSON.stringify(value), { status, headers: { ...PRIVATE, ...more } });

/** Every error of this API in one shape. */
function failure({ kind, message, code, param, status, retryAfter }: GatewayError): Response {
  const error = { type: kind, code: code ?? kind, message, param: param ?? null };
  const headers = retryAfter === undefined ? undefined : { 'retry-after': String(retryAfter) };
  return json({ error }, status, headers);
}

function flagOf(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  if (text === null || text === 'false') return false;
  if (text === 'true') return true;
  throw invalid(`'${name}' must be true or false.`, name);
}

function idempotencyKeyOf(headers: ReadonlyHeaders): string | undefined {
  const key = headers.get('idempotency-key');
  if (key === null) return undefined;
  if (/^[\x21-\x7e]{1,200}$/.test(key)) return key;
  throw invalid('Idempotency-Key must be 1 to 200 visible ASCII characters.', 'Idempotency-Key');
}
