/** Keys by the admin API: list, one, and the changes of them. */

import { adminJson } from './admin-api.ts';
import type { KeySettings } from './key-fields.ts';

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

export const listKeys = (
  query: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal,
) => adminJson<KeysPage>('/keys', { query, signal });

const keyPath = (id: string) => `/keys/${encodeURIComponent(id)}`;

export const getKey = (id: string, signal?: AbortSignal) =>
  adminJson<KeyView>(keyPath(id), { signal });

/** A request that is sent again by accident makes no second key. */
function once(): Readonly<Record<string, string>> {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return {
    'idempotency-key': [...random].map((byte) => byte.toString(16).padStart(2, '0')).join(''),
  };
}

const seen = ({ version }: KeyView) => ({ 'if-match': `"${version}"` });

/** What is null is left out: there is nothing to take away. */
export const createKey = (fields: Readonly<Record<string, unknown>>) =>
  adminJson<Issued>('/keys', {
    method: 'POST',
    body: Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)),
    headers: once(),
  });

export const changeKey = (key: KeyView, fields: Readonly<Record<string, unknown>>) =>
  adminJson<KeyView>(keyPath(key.id), { method: 'PATCH', body: fields, headers: seen(key) });

/** @param grace seconds for which the old secret still works */
export const rotateKey = (key: KeyView, grace: number) =>
  adminJson<Issued>(`${keyPath(key.id)}/rotate`, {
    method: 'POST',
    body: { grace },
    headers: { ...once(), ...seen(key) },
  });

export const revokeKey = (key: KeyView) =>
  adminJson<KeyView>(keyPath(key.id), { method: 'DELETE', headers: seen(key) });

/** Its state in a word, and the tone of it. */
export function stateOf(key: KeyView, now = Date.now()): readonly [text: string, tone: string] {
  if (key.revoked !== undefined) return ['revoked', ''];
  if (key.blocked === true) return ['blocked', 'bad'];
  const left = key.expires === undefined ? undefined : Date.parse(key.expires) - now;
  if (left !== undefined && left <= 0) return ['expired', 'bad'];
  if (left !== undefined && left < 7 * 86_400_000) return ['expires soon', 'warn'];
  return ['active', 'ok'];
}
