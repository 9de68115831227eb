/** Cooldowns of all replicas: where one was refused, no other one asks. */

import { isObject } from '../../lib/json/json.ts';
import type { Hints } from '../../state/key-value/hints.ts';
import type { UpstreamPool } from '../pool.ts';
import type { Upstream } from '../upstream.ts';
import type { CooldownReason } from './cooldown.ts';
import type { CooldownChange, Key } from './place.ts';

/** Milliseconds for which replicas tell each other that a cooldown is over. */
const OVER_MS = 15_000;
const MAX_SEEN = 10_000;
/** Clients choose the names of models. */
const MAX_NAME = 200;
/** Failures elsewhere may be those of that replica's network: an answer here that is not older counts for more. */
const PROOF_MS = 5000;

/** A message of one replica to the others. */
interface CooldownHint {
  readonly provider: string;
  /** A digest of the key; left out: every key. */
  readonly key?: string;
  /** Left out: every model. */
  readonly model?: string;
  readonly reason: CooldownReason;
  readonly status: number;
  /** The cooldown is over; a name for this piece of news. */
  readonly over?: string;
}

export class CooldownHints {
  readonly #ids = new WeakMap<Key, string>();
  /** Ends of cooldowns that were taken note of. */
  readonly #seen = new Set<string>();

  constructor(
    private readonly hints: Hints,
    private readonly upstreams: () => Pick<UpstreamPool, 'named' | 'known'>,
  ) {}

  /** Learns what cools down elsewhere, and how many replicas share the providers. */
  open(): void {
    this.hints.open({
      heard: (value, leftMs) => this.#heard(value, leftMs),
      counted: (replicas) => {
        for (const upstream of this.upstreams().known) upstream.shareAmong(replicas);
      },
    });
  }

  tell({ config, keys }: Upstream, { kind, cooldown, place, key }: CooldownChange): void {
    const model = cooldown === key.cooldown ? undefined : place?.model;
    if ((model?.length ?? 0) > MAX_NAME) return;
    const ofModel = cooldown === place?.modelCooldown;
    const hint: CooldownHint = {
      provider: config.name,
      ...(!ofModel && { key: this.#idOf(config.name, key) }),
      ...(model !== undefined && { model }),
      reason: cooldown.reason!,
      status: cooldown.status,
      ...(kind === 'ended' && { over: crypto.randomUUID() }),
    };
    const ms = kind === 'ended' ? OVER_MS : cooldown.until - keys.now;
    const about = [hint.provider, hint.key ?? null, hint.model ?? null];
    if (ms > 0) this.hints.tell(digest(JSON.stringify(about)), ms, { ...hint });
  }

  #heard(value: unknown, leftMs: number): void {
    if (!isHint(value)) return;
    const { provider, key, model, reason, status, over } = value;
    if (over !== undefined && this.#knows(over)) return;
    const keys = this.upstreams().named(provider)?.keys;
    const isKey = key === undefined ? undefined : (one: Key) => this.#idOf(provider, one) === key;
    const cooldown = keys?.cooldownOf(isKey, model);
    if (keys === undefined || cooldown === undefined) return;
    const { now } = keys;
    const isProved =
      reason === 'failures' &&
      isKey !== undefined &&
      model !== undefined &&
      now - keys.answeredAt(isKey, model) < PROOF_MS;
    if (over !== undefined) cooldown.end(now);
    else if (!isProved) cooldown.adopt({ reason, status }, now + leftMs, now);
  }

  #knows(over: string): boolean {
    if (this.#seen.has(over)) return true;
    if (this.#seen.size >= MAX_SEEN) this.#seen.clear();
    this.#seen.add(over);
    return false;
  }

  /** The same for all replicas, and nothing that tells the key. */
  #idOf(provider: string, key: Key): string {
    let id = this.#ids.get(key);
    if (id === undefined) {
      id = digest(`hopgate rest ${provider}`, key.secret?.reveal() ?? '');
      this.#ids.set(key, id);
    }
    return id;
  }
}

/** @param secret the digest is one that only those who know it can make */
const digest = (text: string, secret?: string): string =>
  new Bun.CryptoHasher('sha256', secret).update(text).digest('base64url').slice(0, 22);

const isHint = (value: unknown): value is CooldownHint =>
  isObject(value) && typeof value.provider === 'string' && typeof value.reason === 'string';
