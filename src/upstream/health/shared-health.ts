/** Rests that all replicas know: where one was told to wait, no other one asks. Also tells how many replicas there are. */

import type { KeyValue } from '../../state/engines/engine.ts';
import type { UpstreamPool } from '../pool.ts';
import type { Upstream } from '../upstream.ts';
import type { Key, Place } from './place.ts';
import type { Rest, RestReason } from './rest.ts';
import { RESTS } from './shared-rests-script.ts';

export interface SharedHealthOptions {
  readonly cache: KeyValue;
  /** Tells this process from all others. */
  readonly replica: string;
  readonly upstreams: () => Pick<UpstreamPool, 'named' | 'known'>;
  /** Between two looks at what others say; a hint comes sooner. */
  readonly pollMs?: number;
}

const POLL_MS = 5000;
const DEADLINE_MS = 1000;
/** A replica counts for so many looks after its last one. */
const LEASE_POLLS = 3;
/** That a rest is over is told for so long. */
const OVER_MS = 15_000;
const MAX_RESTS = 2000;
const MAX_NEWS = 1000;
const MAX_SEEN = 10_000;
/** Clients choose the names of models. */
const MAX_NAME = 200;
/** Failures elsewhere may be those of that replica's network: an answer here that is not older counts for more. */
const PROOF_MS = 5000;

const KEYS = ['{hopgate}:rests', '{hopgate}:gateways'];
const CHANNEL = '{hopgate}:rests';

/** What one replica tells the others; in JSON, unknown members are ignored. */
interface News {
  readonly provider: string;
  /** A digest of the key; left out: every key. */
  readonly key?: string;
  /** Left out: every model. */
  readonly model?: string;
  readonly reason: RestReason;
  readonly status: number;
  /** The rest is over; a name for this piece of news. */
  readonly over?: string;
}

interface Waiting {
  readonly news: News;
  /** By `performance.now`. */
  readonly until: number;
}

export class SharedHealth {
  readonly #options: SharedHealthOptions;
  /** By name. */
  readonly #news = new Map<string, Waiting>();
  readonly #ids = new WeakMap<Key, string>();
  /** Ends of rests that were taken note of. */
  readonly #seen = new Set<string>();
  #replicas = 1;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #unwatch: (() => void) | undefined;
  #calling: Promise<void> | undefined;
  /** Something happened since the call that is under way began. */
  #again = false;
  #closed = false;

  constructor(options: SharedHealthOptions) {
    this.#options = options;
  }

  /** Those that have given a sign of life, this one included. */
  get replicas(): number {
    return this.#replicas;
  }

  /** Learns what rests, and goes on listening. */
  open(): void {
    this.#unwatch = this.#options.cache.watch(CHANNEL, (from) => {
      if (from !== this.#options.replica) void this.#call();
    });
    void this.#call();
  }

  /** A rest began here, or became longer. */
  rests({ config, keys }: Upstream, rest: Rest, place: Place | undefined, key: Key): void {
    const left = rest.until - keys.now;
    this.#tell(this.#newsOf(config.name, rest, place, key), left);
  }

  /** A rest ended here: the vendor answered. */
  back(provider: string, rest: Rest, place: Place | undefined, key: Key): void {
    const news = this.#newsOf(provider, rest, place, key);
    this.#tell({ ...news, over: crypto.randomUUID() }, OVER_MS);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#unwatch?.();
    await this.#calling;
    const { cache, replica } = this.#options;
    await cache.run(RESTS, KEYS, [replica, 0, MAX_RESTS], DEADLINE_MS).catch(() => {});
  }

  #newsOf(provider: string, rest: Rest, place: Place | undefined, key: Key): News {
    const ofKey = rest === key.rest;
    const ofModel = rest === place?.modelRest;
    return {
      provider,
      ...(!ofModel && { key: this.#idOf(provider, key) }),
      ...(!ofKey && place !== undefined && { model: place.model }),
      reason: rest.reason!,
      status: rest.status,
    };
  }

  #tell(news: News, ms: number): void {
    if (this.#closed || (news.model?.length ?? 0) > MAX_NAME || ms <= 0) return;
    const name = nameOf(news);
    this.#news.delete(name);
    this.#news.set(name, { news, until: performance.now() + ms });
    if (this.#news.size > MAX_NEWS) this.#news.delete(this.#news.keys().next().value!);
    void this.#call();
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
      await this.#callOnce().catch(() => {});
    }
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#call(), this.#options.pollMs ?? POLL_MS);
    this.#timer.unref();
  }

  async #callOnce(): Promise<void> {
    const { cache, replica, pollMs = POLL_MS } = this.#options;
    const now = performance.now();
    const args: (string | number)[] = [replica, pollMs * LEASE_POLLS, MAX_RESTS];
    const sent = [...this.#news].filter(([name, { until }]) => {
      if (until > now) return true;
      this.#news.delete(name);
      return false;
    });
    for (const [name, { news, until }] of sent) {
      args.push(name, Math.ceil(until - now), JSON.stringify(news));
    }
    const answer = (await cache.run(RESTS, KEYS, args, DEADLINE_MS)) as readonly unknown[];
    for (const [name, waiting] of sent) {
      if (this.#news.get(name) === waiting) this.#news.delete(name);
    }
    if (sent.length > 0) void cache.publish(CHANNEL, replica, DEADLINE_MS).catch(() => {});
    this.#learn(answer);
  }

  #learn([replicas, ...rest]: readonly unknown[]): void {
    for (let i = 0; i + 2 < rest.length; i += 3) {
      // What is to be told from here is newer.
      if (this.#news.has(String(rest[i]))) continue;
      const news = readNews(String(rest[i + 2]));
      if (news !== undefined) this.#apply(news, Number(rest[i + 1]));
    }
    const count = Math.max(1, Number(replicas));
    if (count === this.#replicas) return;
    this.#replicas = count;
    for (const upstream of this.#options.upstreams().known) upstream.shareAmong(count);
  }

  #apply(news: News, left: number): void {
    const { provider, key, model, reason, status, over } = news;
    if (over !== undefined) {
      if (this.#seen.has(over)) return;
      if (this.#seen.size >= MAX_SEEN) this.#seen.clear();
      this.#seen.add(over);
    }
    const keys = this.#options.upstreams().named(provider)?.keys;
    if (keys === undefined) return;
    const isKey = key === undefined ? undefined : (one: Key) => this.#idOf(provider, one) === key;
    const rest = keys.restOf(isKey, model);
    if (rest === undefined) return;
    const { now } = keys;
    if (over !== undefined) {
      rest.wake(now);
      return;
    }
    const isProved =
      reason === 'failures' &&
      isKey !== undefined &&
      model !== undefined &&
      now - keys.answeredAt(isKey, model) < PROOF_MS;
    if (!isProved) rest.adopt({ reason, status }, now + left, now);
  }

  /** The same for all replicas, and nothing that tells the key. */
  #idOf(provider: string, key: Key): string {
    let id = this.#ids.get(key);
    if (id === undefined) {
      const hash = new Bun.CryptoHasher('sha256', key.secret?.reveal() ?? '');
      id = hash.update(`hopgate rest ${provider}`).digest('base64url').slice(0, 22);
      this.#ids.set(key, id);
    }
    return id;
  }
}

const nameOf = ({ provider, key, model }: News): string =>
  new Bun.CryptoHasher('sha256')
    .update(JSON.stringify([provider, key ?? null, model ?? null]))
    .digest('base64url')
    .slice(0, 22);

function readNews(text: string): News | undefined {
  try {
    const value = JSON.parse(text) as Partial<News> | null;
    const known = typeof value?.provider === 'string' && typeof value.reason === 'string';
    return known ? (value as News) : undefined;
  } catch {
    return undefined;
  }
}
