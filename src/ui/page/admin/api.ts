/** The calls of the admin API that the page makes, with the admin key of this tab. */

import type {
  AuditEntry,
  BudgetsReport,
  Health,
  KeySettings,
  Usage,
  UsageGroup,
} from '../../../admin/api.ts';
import { type Ask, adminKey, jsonOf, type Params, Refused, ROOT, send } from '../kit/fetching.ts';

/** Why the admin API cannot be used: it wants a key, refused the one that was sent, or is switched off. */
export interface Closed {
  readonly why: 'missing' | 'refused' | 'off';
  readonly message: string;
}

let onClosed: (closed: Closed) => void = () => {};

/** Called when a request is refused for its key, or because the admin API is off. */
export function whenClosed(handler: (closed: Closed) => void): void {
  onClosed = handler;
}

export async function admin(path: string, options: Ask = {}): Promise<Response> {
  const sent = adminKey.get();
  try {
    return await send(`/admin/v1${path}`, sent, options);
  } catch (thrown) {
    if (thrown instanceof Refused) {
      // Meanwhile the user has entered another key.
      if (adminKey.get() !== sent) return admin(path, options);
      const { status, code, message } = thrown;
      if (code === 'admin_off') onClosed({ why: 'off', message });
      else if (status === 401) onClosed({ why: sent === '' ? 'missing' : 'refused', message });
      else if (code === 'not_an_admin_key') onClosed({ why: 'refused', message });
    }
    throw thrown;
  }
}

let single = false;

/** Where no key is needed, usage and health are there without an admin key. */
export function reportsWithoutKey(without: boolean): void {
  single = without;
}

/** Usage, spend or health, as text or JSON. @throws Refused; AbortError when the signal ends it */
export const report = (path: string, options: Ask = {}): Promise<Response> =>
  single ? send(`${ROOT}/reports${path}`, '', options) : admin(path, options);

export interface KeyView extends KeySettings {
  readonly id: string;
  readonly source: 'configuration' | 'admin';
  /** Left out for a key of the configuration. */
  readonly version?: number;
  readonly blocked?: boolean;
  readonly created?: string;
  readonly updated?: string;
  readonly revoked?: string;
  readonly secrets?: readonly { readonly created: string; readonly until: string | null }[];
}

export interface ChainReport {
  readonly valid: boolean;
  readonly entries: number;
  readonly head: string;
  readonly fault: string | null;
}

/** The most budgets of one answer. */
export const MAX_BUDGETS = 1000;

interface PageOf<T, Cursor> {
  readonly data: readonly T[];
  readonly next: Cursor | null;
}

interface AdminAnswers {
  '/keys': PageOf<KeyView, string>;
  '/keys/:id': KeyView;
  '/budgets': BudgetsReport;
  '/audit': PageOf<AuditEntry, number>;
  '/audit/verify': ChainReport;
}

interface Reports {
  '/usage': Usage;
  '/health': Health & { readonly workers: number };
}

/** Asks the admin API. @throws Refused; AbortError when the signal ends it */
export const getAdmin = <P extends keyof AdminAnswers>(
  path: P,
  params?: Params,
  signal?: AbortSignal,
): Promise<AdminAnswers[P]> => jsonOf(admin(path, { params, signal }));

export const getReport = <P extends keyof Reports>(
  path: P,
  params?: Params,
  signal?: AbortSignal,
): Promise<Reports[P]> => jsonOf(report(path, { params, signal }));

type Issued = KeyView & { readonly key: string };
type KeyFields = Readonly<Record<string, unknown>>;

const change = <T>(path: string, options: Ask): Promise<T> => jsonOf(admin(path, options));

/** A request that is sent again by accident makes no second key. */
const once = () => ({
  'idempotency-key': crypto.getRandomValues(new Uint32Array(4)).join('-'),
});

/** This key, as it was seen. */
const as = ({ id, version }: KeyView, headers = {}) => ({
  params: { id },
  headers: { ...headers, 'if-match': `"${version}"` },
});

/** What is null is left out: there is nothing to take away. */
export const createKey = (fields: KeyFields) =>
  change<Issued>('/keys', {
    method: 'POST',
    body: Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)),
    headers: once(),
  });

export const changeKey = (key: KeyView, fields: KeyFields) =>
  change<KeyView>('/keys/:id', { method: 'PATCH', body: fields, ...as(key) });

/** @param grace seconds for which the old secret still works */
export const rotateKey = (key: KeyView, grace: number) =>
  change<Issued>('/keys/:id/rotate', { method: 'POST', body: { grace }, ...as(key, once()) });

export const revokeKey = (key: KeyView) =>
  change<KeyView>('/keys/:id', { method: 'DELETE', ...as(key) });

/** The prompt, the part from the cache included. */
export const tokensIn = ({ tokens }: UsageGroup): number =>
  tokens.input + tokens.cache_read + tokens.cache_write;

/** The answer, reasoning included. */
export const tokensOut = ({ tokens }: UsageGroup): number => tokens.output + tokens.reasoning;
