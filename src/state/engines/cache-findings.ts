/** Checks of a cache for `hopgate doctor`: its version, the rights of this user, what it evicts, what it keeps over a restart. */

import type { Cluster, Redis } from 'iovalkey';
import { messageOf } from '../../lib/text/thrown.ts';
import type { EngineFinding } from './engine.ts';

type Client = Redis | Cluster;

/** The lines `name:value` of INFO. */
export function infoOf(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split('\r\n')) {
    const at = line.indexOf(':');
    if (at > 0) found.set(line.slice(0, at), line.slice(at + 1));
  }
  return found;
}

const OLDEST_MAJOR = 6;

export function versionFinding(facts: ReadonlyMap<string, string>): EngineFinding {
  const valkey = facts.get('valkey_version');
  const version = valkey ?? facts.get('redis_version') ?? 'unknown';
  const message = `${valkey === undefined ? 'Redis' : 'Valkey'} ${version}`;
  return Number.parseInt(version, 10) >= OLDEST_MAJOR
    ? { status: 'ok', message }
    : { status: 'fail', message, hint: `Use Valkey, or Redis ${OLDEST_MAJOR} or newer.` };
}

/** Redis adds which script it was, by its digest; of no use to anyone who reads it. */
export function withoutPlace(thrown: unknown): string {
  const message = messageOf(thrown);
  return message.replace(/\s?script: [0-9a-f]{40}, on @user_script:\s?\d{1,9}\.$/, '');
}

/** Lua: writes the key and removes it. */
export const WRITE =
  "redis.call('SET', KEYS[1], '1', 'PX', 1000); return redis.call('DEL', KEYS[1])";

/** What to do about an answer that a script cannot write, by its first word. */
const REMEDIES: Readonly<Record<string, string>> = {
  OOM: 'Give it more memory (maxmemory), or set maxmemory-policy to volatile-lru.',
  NOREPLICAS: 'Start its replicas, or lower min-replicas-to-write.',
  READONLY: 'Name the primary; redis+sentinel:// finds it by itself.',
  MISCONF: 'It cannot write its snapshot: look at its log and its disk.',
};
const ALLOW = 'Allow this user: +@all -@dangerous +info ~{hopgate}:* &{hopgate}:*';

export async function rightsFinding(client: Client): Promise<EngineFinding> {
  const key = `{hopgate}:doctor:${crypto.randomUUID()}`;
  try {
    await client.eval(WRITE, 1, key);
    return { status: 'ok', message: 'scripts may read and write keys {hopgate}:*' };
  } catch (thrown) {
    const why = withoutPlace(thrown);
    return {
      status: 'fail',
      message: `a script cannot write: ${why}`,
      hint: REMEDIES[why.split(' ', 1)[0]!] ?? ALLOW,
    };
  }
}

export function evictionFinding(facts: ReadonlyMap<string, string>): EngineFinding {
  const policy = facts.get('maxmemory_policy') ?? 'unknown';
  const message = `evicts by ${policy}`;
  const hint = 'Set maxmemory-policy to volatile-lru.';
  if (policy === 'noeviction') {
    return { status: 'warn', message: `${message}: a full cache refuses writes`, hint };
  }
  const keepsCounts = policy.startsWith('volatile-') && policy !== 'volatile-ttl';
  return keepsCounts
    ? { status: 'ok', message }
    : {
        status: 'warn',
        message: `${message}: counts of limits may vanish`,
        hint,
      };
}

/** When snapshots are made, '' for never; undefined: this user may not know. */
export async function snapshotRule(client: Client): Promise<string | undefined> {
  try {
    const [, rule] = (await client.config('GET', 'save')) as readonly unknown[];
    return typeof rule === 'string' ? rule : undefined;
  } catch {
    return undefined;
  }
}

const LOOK = 'Look at its log and its disk.';

/**
 * Whether the cache would keep its data over a restart.
 * @param facts the fields of `INFO`
 * @param rule the value of `save`; undefined: the server does not tell it
 */
export function persistenceFinding(
  facts: ReadonlyMap<string, string>,
  rule: string | undefined,
): EngineFinding {
  const failed = (name: string) => (facts.get(name) ?? 'ok') !== 'ok';
  const hasFile = facts.get('aof_enabled') === '1';
  if (hasFile && (failed('aof_last_write_status') || failed('aof_last_bgrewrite_status'))) {
    return { status: 'warn', message: 'cannot write its append-only file', hint: LOOK };
  }
  if (failed('rdb_last_bgsave_status')) {
    return { status: 'warn', message: 'its last snapshot failed', hint: LOOK };
  }
  if (hasFile) return { status: 'ok', message: 'keeps what it holds over a restart' };
  if (rule === undefined) {
    return { status: 'ok', message: 'has no append-only file: a restart may lose what is new' };
  }
  return {
    status: 'ok',
    message:
      rule === ''
        ? 'keeps nothing over a restart: limits then begin anew, and running sessions lose hidden state'
        : 'keeps what it holds over a restart, up to its last snapshot',
  };
}
