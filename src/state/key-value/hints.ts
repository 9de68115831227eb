/** Hints: facts that replicas tell each other and that count for a while. Some may be lost or come late. */

import { type JsonObject, tryParse } from '../../lib/json/json.ts';
import { NewestMap } from '../../lib/loop/newest-map.ts';
import { type KeyValue, script } from '../engines/engine.ts';

export interface HintListener {
  /** A hint of a replica, this one included; the same one comes again while it counts. */
  heard(value: unknown, leftMs: number): void;
  /** There are now so many replicas, this one included. */
  counted(replicas: number): void;
}

export interface Hints {
  /** Replicas that have given a sign of life, this one included. */
  readonly replicas: number;
  /** Hears what counts, and goes on listening. */
  open(listener: HintListener): void;
  /** @param name a later hint of the same name replaces an earlier one */
  tell(name: string, ms: number, value: JsonObject): void;
  close(): Promise<void>;
}

/** This process is the only one: what it knows, it has told itself. */
export const NO_HINTS: Hints = {
  replicas: 1,
  open: () => {},
  tell: () => {},
  close: () => Promise.resolve(),
};

/**
 * KEYS: the hints, the replicas. ARGV: the name of this replica, milliseconds for which it counts (0: it leaves), the
 * most hints, then for each hint: its name, milliseconds for which it counts, its text.
 * Answers: number of replicas, then for each hint that counts: its name, milliseconds left, its text.
 */
const EXCHANGE = script(`
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local lease = tonumber(ARGV[2])
if lease > 0 then redis.call('ZADD', KEYS[2], now + lease, ARGV[1]) else redis.call('ZREM', KEYS[2], ARGV[1]) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local replicas = redis.call('ZCARD', KEYS[2])
if lease > 0 then redis.call('PEXPIRE', KEYS[2], lease * 2) end
local out, longest, count = { replicas }, 0, 0
local function live(value)
  local at = string.find(value, ' ', 1, true)
  return tonumber(string.sub(value, 1, at - 1)) - now, string.sub(value, at + 1)
end
for i = 4, #ARGV, 3 do
  local known = redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1
  if known or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[3]) then
    redis.call('HSET', KEYS[1], ARGV[i], string.format('%.0f', now + ARGV[i + 1]) .. ' ' .. ARGV[i + 2])
  end
end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local left, text = live(all[i + 1])
  if left <= 0 then
    redis.call('HDEL', KEYS[1], all[i])
  else
    longest = math.max(longest, left)
    out[#out + 1], out[#out + 2], out[#out + 3] = all[i], left, text
  end
end
if longest > 0 then redis.call('PEXPIRE', KEYS[1], longest) end
return out
`);

/** Names that replicas of every version use. */
const KEYS = ['{hopgate}:rests', '{hopgate}:gateways'];
const CHANNEL = '{hopgate}:rests';

export interface ValkeyHintsOptions {
  readonly cache: KeyValue;
  /** Tells this process from all others. */
  readonly replica: string;
  /** Between two looks at what others say; a message comes sooner. */
  readonly pollMs?: number;
}

const POLL_MS = 5000;
const DEADLINE_MS = 1000;
/** A replica counts for so many looks after its last one. */
const LEASE_POLLS = 3;
const MAX_HINTS = 2000;
const MAX_PENDING = 1000;

interface PendingHint {
  readonly text: string;
  /** By `performance.now`. */
  readonly until: number;
}

/** One call for all: what is told here goes in, what counts comes out, and each call is a sign of life. */
export class ValkeyHints implements Hints {
  replicas = 1;
  readonly #pending = new NewestMap<string, PendingHint>(MAX_PENDING);
  #listener: HintListener | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #unwatch: (() => void) | undefined;
  #calling: Promise<void> | undefined;
  /** Something happened since the call that is under way began. */
  #again = false;
  #closed = false;

  constructor(private readonly options: ValkeyHintsOptions) {}

  open(listener: HintListener): void {
    this.#listener = listener;
    this.#unwatch = this.options.cache.watch(CHANNEL, (from) => {
      if (from !== this.options.replica) void this.#call();
    });
    void this.#call();
  }

  tell(name: string, ms: number, value: JsonObject): void {
    if (this.#closed) return;
    this.#pending.set(name, { text: JSON.stringify(value), until: performance.now() + ms });
    void this.#call();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#unwatch?.();
    await this.#calling;
    const { cache, replica } = this.options;
    await cache.run(EXCHANGE, KEYS, [replica, 0, MAX_HINTS], DEADLINE_MS).catch(() => {});
  }

  /** One call at a time; what comes meanwhile goes with the next one. */
  #call(): Promise<void> {
    this.#again = true;
    this.#calling ??= this.#callAll().finally(() => {
      this.#calling = undefined;
      // Asked for after the last look.
      if (this.#again && !this.#closed) void this.#call();
    });
    return this.#calling;
  }

  async #callAll(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#again && !this.#closed) {
      this.#again = false;
      await this.#exchange().catch(() => {});
    }
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#call(), this.options.pollMs ?? POLL_MS).unref();
  }

  async #exchange(): Promise<void> {
    const { cache, replica, pollMs = POLL_MS } = this.options;
    const now = performance.now();
    for (const [name, { until }] of this.#pending) if (until <= now) this.#pending.delete(name);
    const sent = [...this.#pending];
    const args = [replica, pollMs * LEASE_POLLS, MAX_HINTS].concat(
      ...sent.map(([name, { text, until }]) => [name, Math.ceil(until - now), text]),
    );
    const answer = (await cache.run(EXCHANGE, KEYS, args, DEADLINE_MS)) as readonly unknown[];
    for (const [name, hint] of sent) {
      if (this.#pending.get(name) === hint) this.#pending.delete(name);
    }
    if (sent.length > 0) void cache.publish(CHANNEL, replica, DEADLINE_MS).catch(() => {});
    const [replicas, ...hints] = answer;
    for (let i = 0; i + 2 < hints.length; i += 3) {
      // What is to be told from here is newer.
      if (this.#pending.has(String(hints[i]))) continue;
      this.#listener?.heard(tryParse(String(hints[i + 2])), Number(hints[i + 1]));
    }
    this.#count(Math.max(1, Number(replicas)));
  }

  #count(replicas: number): void {
    if (replicas === this.replicas) return;
    this.replicas = replicas;
    this.#listener?.counted(replicas);
  }
}
