/** Where `hopgate keys` and `hopgate audit` work: at a running gateway with an admin key, else on the file or database itself. */

import { join } from 'node:path';
import type { Config } from '../../../config/config.ts';
import { needsKey } from '../../../config/sections/auth.ts';
import { GatewayError } from '../../../conversation/errors.ts';
import {
  type IssuedKey,
  KeyChanges,
  type KeysPlace,
  localActor,
} from '../../../keys/key-changes.ts';
import type { AuditReport, KeyStore } from '../../../keys/key-store.ts';
import { KEYS_CHANNEL, keysInDatabase, openKeyFile } from '../../../keys/run-time-keys.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { objects } from '../../../lib/json/typed-reads.ts';
import { redactText } from '../../../lib/text/redact.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { openEngines } from '../../../state/engines/open-engines.ts';
import { type Invocation, UsageError } from '../../command.ts';
import { loadToLook } from '../../load-config.ts';
import { otherHome } from '../../running-gateway.ts';
import { fetchOwn, reachableUrl } from '../../served-models.ts';

/** The same calls on both ways; errors are messages for people. */
export interface KeysAccess {
  /** Clients are served without a key: a new one changes nothing yet. */
  readonly isUnneeded?: boolean;
  create(body: JsonObject): Promise<JsonObject>;
  list(revoked: boolean): Promise<readonly JsonObject[]>;
  show(id: string): Promise<JsonObject>;
  update(id: string, body: JsonObject): Promise<JsonObject>;
  rotate(id: string, body: JsonObject): Promise<JsonObject>;
  revoke(id: string): Promise<JsonObject>;
  verifyAudit(): Promise<Pick<AuditReport, 'count' | 'head'> & { readonly fault: string | null }>;
  close(): void | Promise<void>;
}

/** The gateway refused, or could not be asked. */
export class KeysProblem extends Error {
  override readonly name = 'KeysProblem';
}

/** Undefined when the configuration cannot be used, which has been reported. */
export async function openKeysAccess(invocation: Invocation): Promise<KeysAccess | undefined> {
  const { environment } = invocation.io;
  const config = await loadToLook(invocation);
  if (config === undefined) return undefined;
  const key = environment.variable('HOPGATE_ADMIN_KEY');
  const url = invocation.text('url');
  const { fetch } = invocation.io;
  if (key !== undefined) {
    return url === undefined
      ? overApi(reachableUrl(config.listen), key, fetchOwn(config.listen, fetch))
      : overApi(url, key, fetch);
  }
  if (url !== undefined) throw new UsageError('--url needs an admin key in HOPGATE_ADMIN_KEY.');
  if (config.engines.database === undefined) {
    const other = await otherHome(config, invocation);
    if (other !== undefined) throw new KeysProblem(other);
  }
  return config.engines.database === undefined
    ? onFile(join(environment.home, 'state', 'keys.db'), config)
    : onDatabase(config);
}

const PAGE = 1000;
/** Milliseconds in which the cache must take the hint. */
const HINT_MS = 2000;

function onFile(path: string, config: Config): KeysAccess {
  const store = opened(path);
  return onPlace({ store, changed: () => {} }, config, () => store.close());
}

/** Replicas that run hear of a change by the cache, if there is one. */
function onDatabase(config: Config): KeysAccess {
  const { cache, database, close } = openEngines(config.engines, () => {});
  const place: KeysPlace = {
    store: keysInDatabase(database!),
    async changed() {
      await cache?.publish(KEYS_CHANNEL, '', HINT_MS).catch(() => {});
    },
  };
  return onPlace(place, config, close);
}

function onPlace(place: KeysPlace, config: Config, close: KeysAccess['close']): KeysAccess {
  const keys = new KeyChanges({ place, routes: () => config.routes.map(({ name }) => name) });
  const request = { actor: localActor() };
  const inWords = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown;
      const { cause } = thrown;
      const why = cause instanceof Error ? ` (${redactText(cause.message).text})` : '';
      throw new KeysProblem(thrown.message + why, { cause: thrown });
    }
  };
  const issued = async (made: Promise<IssuedKey>) => {
    const { view, key } = await made;
    return { ...view, key };
  };
  return {
    isUnneeded: !needsKey(config.auth),
    create: (body) => inWords(() => issued(keys.create(body, request))),
    list: (revoked) =>
      inWords(async () => {
        const all: JsonObject[] = [];
        for (let after: string | undefined; ; ) {
          const page = await keys.list({ after, limit: PAGE, revoked });
          all.push(...page.keys);
          if (page.next === undefined) return all;
          after = page.next;
        }
      }),
    show: (id) => inWords(() => keys.get(id)),
    update: (id, body) => inWords(() => keys.update(id, body, request)),
    rotate: (id, body) => inWords(() => issued(keys.rotate(id, body, request))),
    revoke: (id) => inWords(() => keys.revoke(id, request)),
    verifyAudit: () =>
      inWords(async () => {
        const { count, head, fault } = await keys.verifyAudit();
        return { count, head, fault: fault?.message ?? null };
      }),
    close,
  };
}

function opened(path: string): KeyStore {
  try {
    return openKeyFile(path);
  } catch (thrown) {
    const why = messageOf(thrown);
    throw new KeysProblem(`${path} cannot be used: ${why}`, { cause: thrown });
  }
}

function overApi(base: string, key: string, fetch: Invocation['io']['fetch']): KeysAccess {
  async function ask(method: string, path: string, body?: JsonObject): Promise<JsonObject> {
    const url = `${base.replace(/\/$/, '')}/admin/v1${path}`;
    let answer: { readonly ok: boolean; readonly status: number; readonly value: Json | undefined };
    try {
      const response = await fetch(url, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        redirect: 'error',
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const { ok, status } = response;
      answer = { ok, status, value: tryParse(await response.text()) };
    } catch (thrown) {
      throw new KeysProblem(
        `The gateway at ${base} cannot be reached. Unset HOPGATE_ADMIN_KEY to work without it.`,
        { cause: thrown },
      );
    }
    const { ok, status, value } = answer;
    if (ok && isObject(value)) return value;
    const error = isObject(value) && isObject(value.error) ? value.error.message : undefined;
    // The cause stays in the gateway's log: it can name paths and servers.
    const more =
      status >= 500 ? ' The log of the gateway says why, and "hopgate doctor" looks for it.' : '';
    const said = typeof error === 'string' ? error : `The gateway answered ${status}.`;
    throw new KeysProblem(said + more);
  }
  const path = (id: string) => `/keys/${encodeURIComponent(id)}`;
  return {
    create: (body) => ask('POST', '/keys', body),
    async list(revoked) {
      const all: JsonObject[] = [];
      for (let after = ''; ; ) {
        const query = `?limit=${PAGE}&revoked=${revoked}${after === '' ? '' : `&after=${after}`}`;
        const { data, next } = await ask('GET', `/keys${query}`);
        all.push(...objects(data));
        if (typeof next !== 'string') return all;
        after = next;
      }
    },
    show: (id) => ask('GET', path(id)),
    update: (id, body) => ask('PATCH', path(id), body),
    rotate: (id, body) => ask('POST', `${path(id)}/rotate`, body),
    revoke: (id) => ask('DELETE', path(id)),
    async verifyAudit() {
      const { entries, head, fault } = await ask('GET', '/audit/verify');
      return {
        count: Number(entries),
        head: String(head),
        fault: typeof fault === 'string' ? fault : null,
      };
    },
    close: () => {},
  };
}
