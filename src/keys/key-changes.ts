/** Changes of keys at run time, for the admin API and for commands: checked, written with their audit entry, seen at once. */

import { userInfo } from 'node:os';
import { check } from '../config/file/check.ts';
import { pathText, problemText } from '../config/file/problem.ts';
import { closed, flag, number } from '../config/file/schema.ts';
import { shortText } from '../config/sections/keys/budgets.ts';
import {
  type FileKeySettings,
  keySettings,
  readKeySettings,
} from '../config/sections/keys/settings.ts';
import { GatewayError } from '../conversation/errors.ts';
import type { Json, JsonObject } from '../lib/json/json.ts';
import { auditView, type ChainedEntry, isoTime } from './audit-chain.ts';
import { hexOf, sha256 } from './directory.ts';
import type { KeyChange, KeyRecord, SecretRecord } from './key-records.ts';
import {
  type AuditFilter,
  type AuditReport,
  type ChangedKey,
  type ChangePlan,
  type KeyPage,
  type KeyStore,
  type PlannedChange,
  type RequestMark,
  RequestReused,
} from './key-store.ts';
import { newKeyId, newKeyText } from './secret-format.ts';

/** Where the keys are, and what must know of a change at once. */
export interface KeysPlace {
  /** @throws when it cannot be used */
  readonly store: KeyStore;
  changed(): void | Promise<void>;
}

/** Who changes something, and how the request is known again. */
export interface ChangeRequest {
  /** For the audit. */
  readonly actor: string;
  /** From where, `203.0.113.7`; left out where it is not known. */
  readonly address?: string | undefined;
  /** The client's `Idempotency-Key`. */
  readonly idempotencyKey?: string | undefined;
  /** The version that the client has seen. */
  readonly version?: number | undefined;
}

/** A key as the API shows it; times are ISO 8601. */
export interface KeyView extends JsonObject {
  readonly id: string;
  readonly version: number;
}

/** A new secret, shown this once. */
export interface IssuedKey {
  readonly view: KeyView;
  /** The key itself. */
  readonly key: string;
}

const members = {
  name: shortText('A name for people.'),
  blocked: flag('The key is refused until this is false again.').byDefault(false),
  ...keySettings,
};
const keySchema = closed('A key.', members);
const rotationSchema = closed('A rotation.', {
  grace: number('Seconds for which the old secret still works.', {
    minimum: 0,
    maximum: 90 * 24 * 3600,
  }).byDefault(24 * 3600),
});

/** A secret that was just issued is given again to the same request for so long, from memory. */
const REPEAT_MS = 10 * 60_000;
const MAX_REPEATED = 1000;

interface IssuedSecret {
  readonly key: string;
  /** Milliseconds since 1970. */
  readonly until: number;
}

export interface KeyChangesOptions {
  readonly place: KeysPlace;
  /** The names of the routes in force. */
  readonly routes: () => readonly string[];
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Every method rejects with GatewayError: invalid_request, not_found, conflict, or overloaded where the store cannot be used. */
export class KeyChanges {
  readonly #now: () => number;
  readonly #issued = new Map<string, IssuedSecret>();

  constructor(private readonly options: KeyChangesOptions) {
    this.#now = options.now ?? Date.now;
  }

  /** @param body the members of a key; `name` is needed */
  async create(body: JsonObject, request: ChangeRequest): Promise<IssuedKey> {
    const { name, blocked, settings } = this.#checked(body);
    const id = newKeyId();
    const key = newKeyText(id);
    const now = this.#now();
    const times = { created: now, updated: now, revoked: undefined };
    const record: KeyRecord = { id, name, version: 1, ...times, blocked, settings };
    const made = { record, secrets: [newSecret(id, key, now)] };
    return this.#issue(id, key, request, ['create', body], () =>
      planned('key.create', request, undefined, made),
    );
  }

  async get(id: string): Promise<KeyView> {
    const found = await this.#read((store) => store.get(id));
    if (found === undefined) throw notFound(id);
    return viewOf(found, true);
  }

  async list(page: KeyPage): Promise<{
    readonly keys: readonly KeyView[];
    /** The `after` of the next page. */
    readonly next: string | undefined;
  }> {
    // One more than the page tells whether there is another.
    const found = await this.#read((store) => store.list({ ...page, limit: page.limit + 1 }));
    const keys = found.slice(0, page.limit).map((record) => viewOf({ record, secrets: [] }, false));
    return { keys, next: found.length > page.limit ? keys.at(-1)?.id : undefined };
  }

  /** @param body the members that change; null: as if it had not been given */
  async update(id: string, body: JsonObject, request: ChangeRequest): Promise<KeyView> {
    const now = this.#now();
    const changed = await this.#change(id, (found) => {
      const before = this.#changeable(id, found, request);
      const record = { ...changedAt(now, before), ...this.#checked(merged(before.record, body)) };
      return planned('key.update', request, before, { record, secrets: before.secrets });
    });
    return viewOf(changed, true);
  }

  /** A new secret; the old one works until the grace is over. What was spent stays with the id. */
  async rotate(id: string, body: JsonObject, request: ChangeRequest): Promise<IssuedKey> {
    const { value, problems } = check(rotationSchema, body, new Set());
    throwIfAny(problems);
    const grace = Math.round((value as { grace: number }).grace * 1000);
    const key = newKeyText(id);
    const now = this.#now();
    return this.#issue(id, key, request, ['rotate', id, body], (found) => {
      const before = this.#changeable(id, found, request);
      const kept = before.secrets
        .map((one) => ({
          ...one,
          until: Math.min(one.until ?? Number.MAX_SAFE_INTEGER, now + grace),
        }))
        .filter(({ until }) => until > now);
      const after = { record: changedAt(now, before), secrets: [newSecret(id, key, now), ...kept] };
      return planned('key.rotate', request, before, after, { grace_seconds: grace / 1000 });
    });
  }

  /** Ends a key for ever. It stays in the list of revoked ones: what was spent belongs to it. */
  async revoke(id: string, request: ChangeRequest): Promise<KeyView> {
    const now = this.#now();
    const changed = await this.#change(id, (found) => {
      const before = this.#changeable(id, found, request);
      const record = { ...changedAt(now, before), revoked: now };
      return planned('key.revoke', request, before, { record, secrets: [] });
    });
    return viewOf(changed, true);
  }

  audit(filter: AuditFilter): Promise<readonly ChainedEntry[]> {
    return this.#read((store) => store.audit(filter));
  }

  verifyAudit(): Promise<AuditReport> {
    return this.#read((store) => store.verifyAudit());
  }

  #checked(body: JsonObject) {
    const { value, problems } = check(keySchema, body, new Set());
    throwIfAny(problems);
    const { name, blocked, ...settings } = value as {
      name: string;
      blocked: boolean;
    } & FileKeySettings;
    const findings = { problems: [], warnings: [] };
    const routes = new Set(this.options.routes());
    readKeySettings(settings, { id: 'hk_', name, path: [] }, routes, findings);
    throwIfAny(findings.problems);
    return { name, blocked, settings };
  }

  #changeable(id: string, found: KeyChange | undefined, { version }: ChangeRequest): KeyChange {
    if (found === undefined) throw notFound(id);
    const { record } = found;
    if (version !== undefined && version !== record.version) {
      throw new GatewayError(
        'conflict',
        `The key is at version ${record.version}, not at ${version}: read it again.`,
        { status: 412, code: 'version_mismatch' },
      );
    }
    if (record.revoked !== undefined) {
      throw new GatewayError('conflict', 'The key is revoked: make a new one.', {
        code: 'key_revoked',
      });
    }
    return found;
  }

  /** A change that issues a secret: asked for again with the same `Idempotency-Key`, it gives the same one. */
  async #issue(
    id: string,
    key: string,
    request: ChangeRequest,
    what: readonly Json[],
    plan: ChangePlan,
  ): Promise<IssuedKey> {
    const mark = markOf(request, what);
    let changed: ChangedKey;
    try {
      changed = await this.#change(id, plan, mark);
    } catch (thrown) {
      // The change may have been made, and only its answer lost: the repeated request tells.
      const isLost = thrown instanceof GatewayError && thrown.code === UNREADABLE;
      if (isLost && mark !== undefined) this.#remember(mark.key, key);
      throw thrown;
    }
    const view = viewOf(changed, true);
    if (!changed.repeated) {
      if (mark !== undefined) this.#remember(mark.key, key);
      return { view, key };
    }
    const earlier = mark && this.#issued.get(mark.key);
    if (earlier !== undefined && this.#now() < earlier.until) return { view, key: earlier.key };
    throw new GatewayError(
      'conflict',
      `This request was answered before: it is about the key ${view.id}, whose secret is not shown again. Rotate it for another.`,
      { code: 'already_issued' },
    );
  }

  #remember(mark: string, key: string): void {
    const now = this.#now();
    for (const [one, { until }] of this.#issued) {
      if (until > now && this.#issued.size < MAX_REPEATED) break;
      this.#issued.delete(one);
    }
    this.#issued.set(mark, { key, until: now + REPEAT_MS });
  }

  async #change(id: string, plan: ChangePlan, mark?: RequestMark): Promise<ChangedKey> {
    const changed = await this.#read((store) => store.change(id, plan, mark));
    await this.options.place.changed();
    return changed;
  }

  async #read<T>(work: (store: KeyStore) => Promise<T>): Promise<T> {
    let store: KeyStore | undefined;
    try {
      store = this.options.place.store;
      return await work(store);
    } catch (thrown) {
      if (thrown instanceof GatewayError) throw thrown;
      if (thrown instanceof RequestReused) {
        throw new GatewayError('conflict', 'This Idempotency-Key was used for another request.', {
          code: 'idempotency_key_reused',
        });
      }
      const what = store?.form ?? 'file';
      throw new GatewayError('overloaded', `The ${what} of the keys cannot be used now.`, {
        code: UNREADABLE,
        retryAfter: 5,
        cause: thrown,
      });
    }
  }
}

const UNREADABLE = 'keys_unreadable';

const digestOf = (key: string) => hexOf(sha256(key));

const newSecret = (id: string, key: string, now: number): SecretRecord => ({
  digest: digestOf(key),
  key: id,
  created: now,
  until: undefined,
});

const changedAt = (now: number, { record }: KeyChange): KeyRecord => ({
  ...record,
  version: record.version + 1,
  updated: now,
});

/** A change with its audit entry. @param more members of the entry about the change itself */
function planned(
  action: string,
  request: ChangeRequest,
  before: KeyChange | undefined,
  after: KeyChange,
  more: JsonObject = {},
): PlannedChange {
  const audit = {
    time: after.record.updated,
    actor: actorOf(request),
    action,
    before: before === undefined ? null : auditView(before),
    after: { ...auditView(after), ...more },
  };
  return { ...after, audit };
}

const notFound = (id: string) =>
  new GatewayError('not_found', `There is no key ${JSON.stringify(id.slice(0, 100))}.`, {
    code: 'key_not_found',
  });

/** Null takes a member away. */
function merged({ name, blocked, settings }: KeyRecord, body: JsonObject): JsonObject {
  const all: JsonObject = { name, blocked, ...(settings as unknown as JsonObject), ...body };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
}

function throwIfAny(problems: ReturnType<typeof check>['problems']): void {
  const [first] = problems;
  if (first === undefined) return;
  const param = pathText(first.path);
  const message = problemText(first);
  throw new GatewayError('invalid_request', param === '' ? message : `${param}: ${message}`, {
    code: 'invalid_field',
    ...(param !== '' && { param }),
  });
}

function markOf(
  { actor, idempotencyKey }: ChangeRequest,
  what: readonly Json[],
): RequestMark | undefined {
  if (idempotencyKey === undefined) return undefined;
  return {
    key: digestOf(JSON.stringify([actor, idempotencyKey])),
    body: digestOf(JSON.stringify(what)),
  };
}

/** For the audit: who, and from where. */
const actorOf = ({ actor, address }: ChangeRequest): string =>
  address === undefined ? actor : `${actor}@${address}`;

/** @param whole also its secrets, by when they were made and how long they work */
function viewOf({ record, secrets }: KeyChange, whole: boolean): KeyView {
  const { id, name, version, created, updated, blocked, revoked, settings } = record;
  return {
    id,
    name,
    version,
    blocked,
    created: isoTime(created),
    updated: isoTime(updated),
    ...(revoked !== undefined && { revoked: isoTime(revoked) }),
    ...(settings as unknown as JsonObject),
    ...(whole && {
      secrets: secrets.map((one) => ({
        created: isoTime(one.created),
        until: one.until === undefined ? null : isoTime(one.until),
      })),
    }),
  };
}

/** `local:` and the name of the user. */
export function localActor(): string {
  try {
    return `local:${userInfo().username}`;
  } catch {
    // A container may have no name for its user.
    return `local:${process.getuid?.() ?? 'unknown'}`;
  }
}
