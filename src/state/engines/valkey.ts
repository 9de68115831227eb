/** Valkey or Redis as the shared cache: one server, Sentinel, or a cluster. The client is loaded with the first use. */

import { readFileSync } from 'node:fs';
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'iovalkey';
import type { CacheAddress } from '../../config/sections/engines.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import {
  type CacheEntry,
  clockFinding,
  type EngineFinding,
  type EngineState,
  finding,
  type KeyValue,
  latencyFinding,
  type Script,
} from './engine.ts';
import { EngineWatch } from './watch.ts';

const CONNECT_MS = 1000;
const COMMAND_MS = 2000;
const EXAMINE_MS = 3000;

type Client = Redis | Cluster;

export class ValkeyCache implements KeyValue {
  readonly #address: CacheAddress;
  readonly #watch: EngineWatch;
  readonly #listeners = new Map<string, Set<(message: string | undefined) => void>>();
  #client: Promise<Client> | undefined;
  #subscriber: Promise<Client> | undefined;
  /** Why the last connection could not be made, or broke. */
  #lost: Error | undefined;
  #closed = false;

  constructor(address: CacheAddress, onChange: (state: EngineState) => void) {
    this.#address = address;
    this.#watch = new EngineWatch({
      name: 'cache',
      // PING is not enough: a server without memory or replicas answers it, and refuses every write.
      ping: () => this.#ask(writeOnce),
      isAway,
      trouble: () => this.#lost,
      onChange,
    });
  }

  get state(): EngineState {
    return this.#watch.state;
  }

  run(
    { lua, sha1 }: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    deadlineMs: number,
  ): Promise<unknown> {
    return this.#use(deadlineMs, async (client) => {
      try {
        return await client.evalsha(sha1, keys.length, ...keys, ...args);
      } catch (thrown) {
        if (!(thrown instanceof Error) || !thrown.message.startsWith('NOSCRIPT')) throw thrown;
        return client.eval(lua, keys.length, ...keys, ...args);
      }
    });
  }

  getMany(
    keys: readonly string[],
    deadlineMs: number,
  ): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#use(deadlineMs, async (client) => {
      const values = await client.mgetBuffer(...keys);
      return values.map((value) => value ?? undefined);
    });
  }

  put(entries: readonly CacheEntry[], deadlineMs: number): Promise<readonly boolean[]> {
    return this.#use(deadlineMs, async (client) => {
      const pipeline = client.pipeline();
      for (const { key, value, ttlMs, onlyIfAbsent } of entries) {
        const bytes = Buffer.from(value);
        if (onlyIfAbsent === true) pipeline.set(key, bytes, 'PX', ttlMs, 'NX');
        else pipeline.set(key, bytes, 'PX', ttlMs);
      }
      return ((await pipeline.exec()) ?? []).map(([error, answer]) => {
        if (error !== null) throw error;
        return answer === 'OK';
      });
    });
  }

  watch(channel: string, listener: (message: string | undefined) => void): () => void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners);
    listeners.add(listener);
    this.#subscriber ??= this.#subscribing();
    void this.#subscriber.then((client) => client.subscribe(channel)).catch(() => {});
    return () => {
      listeners.delete(listener);
    };
  }

  publish(channel: string, message: string, deadlineMs: number): Promise<void> {
    return this.#use(deadlineMs, async (client) => {
      try {
        await client.publish(channel, message);
      } catch (thrown) {
        // Without the right to its channel, hints alone are missing; doctor says so.
        if (!isDenied(thrown)) throw thrown;
      }
    });
  }

  open(): Promise<void> {
    return this.#watch.open();
  }

  examine(): Promise<readonly EngineFinding[]> {
    return this.#use(EXAMINE_MS, async (client) => {
      const sent = performance.now();
      const [seconds] = await client.time();
      const skewMs = Number(seconds) * 1000 + 500 - Date.now();
      const firstMs = performance.now() - sent;
      const times = [firstMs];
      for (let i = 0; i < 4; i++) {
        const began = performance.now();
        await client.ping();
        times.push(performance.now() - began);
      }
      const facts = infoOf(String(await client.info()));
      return [
        versionFinding(facts),
        await rightsFinding(client),
        evictionFinding(facts),
        persistenceFinding(facts, await snapshotRule(client)),
        clockFinding(skewMs, 1000),
        latencyFinding(times),
      ];
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watch.close();
    for (const one of [this.#client, this.#subscriber]) {
      const client = await one?.catch(() => undefined);
      client?.disconnect();
    }
  }

  #use<T>(deadlineMs: number, work: (client: Client) => Promise<T>): Promise<T> {
    return this.#watch.use(deadlineMs, () => this.#ask(work));
  }

  /** The client says that it has given up; why is in the error of the connection. */
  async #ask<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = await this.#connected();
    try {
      return await work(client);
    } catch (thrown) {
      if (hasGivenUp(thrown)) throw this.#lost ?? new Error(CLOSED, { cause: thrown });
      if (isTimeout(thrown)) throw this.#lost ?? new Error(`no answer within ${COMMAND_MS} ms`);
      if (thrown instanceof Error) thrown.message = withoutPlace(thrown);
      throw thrown;
    }
  }

  #connected(): Promise<Client> {
    this.#client ??= connect(this.#address, (lost) => {
      this.#lost = lost;
    }).catch((thrown: unknown) => {
      // Not a failed connection, which the client repeats by itself: the client could not be made.
      this.#client = undefined;
      throw thrown;
    });
    return this.#client;
  }

  /** A connection that listens can do nothing else. The client subscribes again after every reconnect. */
  async #subscribing(): Promise<Client> {
    const client = await connect(this.#address, () => {});
    client.on('message', (channel: string, message: string) => {
      for (const listener of this.#listeners.get(channel) ?? []) listener(message);
    });
    client.on('ready', () => {
      for (const listeners of this.#listeners.values()) {
        for (const listener of listeners) listener(undefined);
      }
    });
    if (this.#closed) client.disconnect();
    return client;
  }
}

async function connect(
  address: CacheAddress,
  /** Gets why there is no connection, and undefined when there is one. */
  onChange: (lost: Error | undefined) => void,
): Promise<Client> {
  const { Cluster, Redis, ReplyError } = await import('./valkey-client.ts');
  replyError = ReplyError;
  const { form, nodes, username, password, sentinelPassword, db, tls, caFile } = address;
  const secure = tls ? { tls: caFile === undefined ? {} : { ca: readFileSync(caFile) } } : {};
  const common: RedisOptions = {
    ...secure,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password: password.reveal() }),
    connectTimeout: CONNECT_MS,
    // Beneath the deadlines of callers: the connection of a frozen server is given up.
    commandTimeout: COMMAND_MS,
    socketTimeout: COMMAND_MS * 2,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 1,
    // A server that was a primary and is a replica now refuses writes: the next connection finds the new one.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    retryStrategy: pauseMs,
  };
  const lose = (error: Error) => {
    if (!isSilent(error)) onChange(error);
  };
  let client: Client;
  if (form === 'cluster') {
    const options: ClusterOptions = {
      redisOptions: common,
      slotsRefreshTimeout: CONNECT_MS,
      clusterRetryStrategy: pauseMs,
    };
    client = new Cluster([...nodes], options);
  } else if (form === 'sentinel') {
    client = new Redis({
      ...common,
      db,
      sentinels: [...nodes],
      ...(sentinelPassword !== undefined && { sentinelPassword: sentinelPassword.reveal() }),
      name: address.master!,
      ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: common.tls! }),
      sentinelRetryStrategy: pauseMs,
    });
  } else client = new Redis({ ...common, ...nodes[0]!, db });
  // Without a listener, an error of the connection would end the process; calls see it themselves.
  client.on('error', lose);
  // A cluster's own error does not say what is wrong with its nodes.
  client.on('node error', lose);
  client.on('ready', () => onChange(undefined));
  return client;
}

const pauseMs = (times: number) => Math.min(1000, 50 * 2 ** Math.min(times, 5));

const CLOSED = 'the server closes the connection before it answers (does it want TLS?)';
// The names of the client's classes are shortened in the compiled program, its words are not.
const GIVEN_UP = /^(?:Reached the max retries per request limit|Failed to refresh slots cache)/;

const hasGivenUp = (thrown: unknown): boolean =>
  thrown instanceof Error && GIVEN_UP.test(thrown.message);

/** The client's class of a server's own errors; undefined until the client is loaded. */
let replyError: (abstract new () => unknown) | undefined;

const isReply = (thrown: Error): boolean =>
  replyError !== undefined && thrown instanceof replyError;

const isTimeout = (thrown: unknown): boolean =>
  thrown instanceof Error && thrown.message === 'Command timed out';

/** Says only that there is no connection, and not why. */
const isSilent = (error: Error): boolean =>
  hasGivenUp(error) || error.message === 'Connection is closed.';

// Limits follow on_error after these, since repeating the call would not help: the server does not serve, refuses this user,
// is one of a cluster (MOVED, ASK), or another program has written the keys (WRONGTYPE).
const NOT_SERVING =
  /^(ERR The user executing the script|LOADING|MASTERDOWN|CLUSTERDOWN|READONLY|TRYAGAIN|BUSY|MISCONF|OOM|NOREPLICAS|NOAUTH|WRONGPASS|NOPERM|MOVED|ASK|WRONGTYPE)\b/;

const isDenied = (thrown: unknown): boolean =>
  thrown instanceof Error && thrown.message.startsWith('NOPERM');

/** Throws only what would fail for every call. */
async function writeOnce(client: Client): Promise<void> {
  try {
    await client.eval(WRITE, 1, `{hopgate}:ping:${crypto.randomUUID()}`);
  } catch (thrown) {
    if (isAway(thrown)) throw thrown;
  }
}

function isAway(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return true;
  return !isReply(thrown) || NOT_SERVING.test(thrown.message);
}

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
    ? finding('ok', message)
    : finding('fail', message, `Use Valkey, or Redis ${OLDEST_MAJOR} or newer.`);
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
  MOVED: 'It is a cluster: name it with redis+cluster://.',
  MISCONF: 'It cannot write its snapshot: look at its log and its disk.',
};
const ALLOW = 'Allow this user: +@all -@dangerous +info ~{hopgate}:* &{hopgate}:*';

export async function rightsFinding(client: Client): Promise<EngineFinding> {
  const key = `{hopgate}:doctor:${crypto.randomUUID()}`;
  try {
    await client.eval(WRITE, 1, key);
    await client.publish(key, '');
    return finding('ok', 'scripts may read and write keys {hopgate}:*, and channels of that name');
  } catch (thrown) {
    const why = withoutPlace(thrown);
    const hint = REMEDIES[why.split(' ', 1)[0]!] ?? ALLOW;
    const what = why.includes('channel') ? 'hints cannot be sent' : 'a script cannot write';
    return finding('fail', `${what}: ${why}`, hint);
  }
}

export function evictionFinding(facts: ReadonlyMap<string, string>): EngineFinding {
  const policy = facts.get('maxmemory_policy') ?? 'unknown';
  const message = `evicts by ${policy}`;
  const hint = 'Set maxmemory-policy to volatile-lru.';
  if (policy === 'noeviction') {
    return finding('warn', `${message}: a full cache refuses writes`, hint);
  }
  const keepsCounts = policy.startsWith('volatile-') && policy !== 'volatile-ttl';
  return keepsCounts
    ? finding('ok', message)
    : finding('warn', `${message}: counts of limits may vanish`, hint);
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
    return finding('warn', 'cannot write its append-only file', LOOK);
  }
  if (failed('rdb_last_bgsave_status')) {
    return finding('warn', 'its last snapshot failed', LOOK);
  }
  if (hasFile) return finding('ok', 'keeps what it holds over a restart');
  if (rule === undefined) {
    return finding('ok', 'has no append-only file: a restart may lose what is new');
  }
  return finding(
    'ok',
    rule === ''
      ? 'keeps nothing over a restart: limits then begin anew, and running sessions lose hidden state'
      : 'keeps what it holds over a restart, up to its last snapshot',
  );
}
