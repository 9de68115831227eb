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

const adminJson = <T>(path: string, options?: Ask): Promise<T> => jsonOf(admin(path, options));

let single = false;

/** Where no key is needed, usage and health are there without an admin key. */
export function reportsWithoutKey(without: boolean): void {
  single = without;
}

/** Usage, spend or health. @throws Refused; AbortError when the signal ends it */
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

export interface KeysPage {
  readonly data: readonly KeyView[];
  readonly next: string | null;
}

type Issued = KeyView & { readonly key: string };
type KeyFields = Readonly<Record<string, unknown>>;

export const listKeys = (params: Params, signal?: AbortSignal) =>
  adminJson<KeysPage>('/keys', { params, signal });

export const getKey = (id: string, signal?: AbortSignal) =>
  adminJson<KeyView>('/keys/:id', { params: { id }, signal });

/** A request that is sent again by accident makes no second key. */
function once(): Readonly<Record<string, string>> {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return {
    'idempotency-key': [...random].map((byte) => byte.toString(16).padStart(2, '0')).join(''),
  };
}

const seen = ({ version }: KeyView) => ({ 'if-match': `"${version}"` });

/** This key, as it was seen. */
const as = (key: KeyView) => ({ params: { id: key.id }, headers: seen(key) });

/** What is null is left out: there is nothing to take away. */
export const createKey = (fields: KeyFields) =>
  adminJson<Issued>('/keys', {
    method: 'POST',
    body: Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)),
    headers: once(),
  });

export const changeKey = (key: KeyView, fields: KeyFields) =>
  adminJson<KeyView>('/keys/:id', { method: 'PATCH', body: fields, ...as(key) });

/** @param grace seconds for which the old secret still works */
export const rotateKey = (key: KeyView, grace: number) =>
  adminJson<Issued>('/keys/:id/rotate', {
    method: 'POST',
    body: { grace },
    params: { id: key.id },
    headers: { ...once(), ...seen(key) },
  });

export const revokeKey = (key: KeyView) =>
  adminJson<KeyView>('/keys/:id', { method: 'DELETE', ...as(key) });

export const getBudgets = (signal: AbortSignal) =>
  adminJson<BudgetsReport>('/budgets', { params: { limit: 1000 }, signal });

export const getUsage = (params: Params, signal: AbortSignal) =>
  jsonOf<Usage>(report('/usage', { params, signal }));

/** The prompt, the part from the cache included. */
export const tokensIn = ({ tokens }: UsageGroup): number =>
  tokens.input + tokens.cache_read + tokens.cache_write;

/** The answer, reasoning included. */
export const tokensOut = ({ tokens }: UsageGroup): number => tokens.output + tokens.reasoning;

export const getHealth = (signal: AbortSignal) =>
  jsonOf<Health & { readonly workers: number }>(report('/health', { signal }));

export const getAudit = (params: Params, signal?: AbortSignal) =>
  adminJson<{ readonly data: readonly AuditEntry[]; readonly next: number | null }>('/audit', {
    params,
    signal,
  });

export interface ChainReport {
  readonly valid: boolean;
  readonly entries: number;
  readonly head: string;
  readonly fault: string | null;
}

export const verifyAudit = (signal: AbortSignal) =>
  adminJson<ChainReport>('/audit/verify', { signal });
