/** The cache as the place where rates and slots of all replicas are counted: one script for any number of limits. */

import { type KeyValue, script } from '../state/engines/engine.ts';
import type { Answer, Counter, Take } from './counters.ts';

/**
 * KEYS: the replicas, then one key for each limit. ARGV: the name of this replica and the milliseconds for which it
 * and its slots count, then for each limit:
 *
 * - rate: `r`, amount, period, need, ahead, debt, number of refunds, and for each refund: units, used, and as the
 *   take answered them: time, offset, refunded
 * - slots: `s`, amount, need, ahead, units given back, units held in all (-1: as counted)
 *
 * What is needed is granted for all limits or for none. Debts and refunds count in any case. A rate is GCRA by the
 * server's clock; a refund never lets more through than the rate.
 *
 * Answers: number of replicas, time, then for each limit: granted, milliseconds to wait, offset (slots: units held by
 * this replica), refunded, units that are left.
 */
export const TAKE = script(`
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local me, lease = ARGV[1], tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], now + lease, me)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local replicas = redis.call('ZCARD', KEYS[1])
local function text(number) return string.format('%.0f', number) end
local limits, refused, i = {}, false, 3
for k = 2, #KEYS do
  local limit = { key = KEYS[k], kind = ARGV[i], amount = tonumber(ARGV[i + 1]), wait = 0, granted = 0 }
  if limit.kind == 'r' then
    local amount, period = limit.amount, tonumber(ARGV[i + 2])
    limit.period, limit.need, limit.ahead = period, tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
    local more, refunds = tonumber(ARGV[i + 5]), tonumber(ARGV[i + 6])
    i = i + 7
    local stored = redis.call('HMGET', limit.key, 'debt', 'at', 'refunded')
    local debt, at = tonumber(stored[1]) or 0, tonumber(stored[2]) or now
    local refunded = tonumber(stored[3]) or 0
    if now > at then debt = math.max(0, debt - (now - at) * amount) else now = at end
    debt = debt + more * period
    for _ = 1, refunds do
      local units, used, admitted = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
      local offset, seen = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
      i = i + 5
      local start = math.max(0, offset - math.max(0, refunded - seen))
      local ending = start + units * period
      local drained = math.min(ending, math.max(0, now - admitted) * amount)
      local refund = math.min(debt, ending - math.max(drained, start + used * period))
      if refund > 0 then
        debt = debt - refund
        refunded = refunded + refund
      end
    end
    limit.debt, limit.refunded = debt, refunded
    local over = debt + limit.need * period - amount * period
    if limit.need > 0 and over > 0 then limit.wait = math.ceil(over / amount) end
  else
    limit.need, limit.ahead = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
    local given, held = tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5])
    i = i + 6
    limit.mine, limit.others = 0, 0
    local stored = redis.call('HGETALL', limit.key)
    for n = 1, #stored, 2 do
      local count, ends = string.match(stored[n + 1], '^(%d+) (%d+)$')
      if stored[n] == me then limit.mine = tonumber(count)
      elseif tonumber(ends) > now then limit.others = limit.others + tonumber(count)
      else redis.call('HDEL', limit.key, stored[n]) end
    end
    if held >= 0 then limit.mine = held end
    limit.mine = math.max(0, limit.mine - given)
    if limit.need > 0 and limit.mine + limit.others + limit.need > limit.amount then limit.wait = 1000 end
  end
  if limit.wait > 0 then refused = true end
  limits[#limits + 1] = limit
end
local answer = { replicas, now }
local function push(limit, held, refunded, left)
  for _, value in ipairs({ limit.granted, limit.wait, held, refunded, math.max(0, left) }) do
    answer[#answer + 1] = value
  end
end
for _, limit in ipairs(limits) do
  if limit.kind == 'r' then
    local offset = limit.debt
    local free = limit.amount - limit.debt / limit.period - limit.need
    if not refused then
      limit.granted = limit.need + math.max(0, math.min(limit.ahead, math.floor(free * 0.1 / replicas)))
      limit.debt = limit.debt + limit.granted * limit.period
    end
    redis.call('HSET', limit.key, 'debt', text(limit.debt), 'at', text(now), 'refunded', text(limit.refunded))
    redis.call('PEXPIRE', limit.key, math.ceil(limit.debt / limit.amount) + 3600000)
    push(limit, offset, limit.refunded, math.floor(limit.amount - limit.debt / limit.period))
  else
    local free = limit.amount - limit.mine - limit.others - limit.need
    if not refused then
      limit.granted = limit.need + math.max(0, math.min(limit.ahead, math.floor(free * 0.1 / replicas)))
      limit.mine = limit.mine + limit.granted
    end
    if limit.mine > 0 then
      redis.call('HSET', limit.key, me, text(limit.mine) .. ' ' .. text(now + lease))
      redis.call('PEXPIRE', limit.key, lease * 2)
    else redis.call('HDEL', limit.key, me) end
    push(limit, limit.mine, 0, limit.amount - limit.mine - limit.others)
  end
end
return answer
`);

const REPLICAS = '{hopgate}:replicas';
const DEADLINE_MS = 100;
const FLUSH_MS = 200;

export interface CacheCounterOptions {
  readonly cache: KeyValue;
  /** Tells this process from all others. */
  readonly replica: string;
  readonly leaseMs: number;
}

export function cacheCounter({ cache, replica, leaseMs }: CacheCounterOptions): Counter {
  return {
    deadlineMs: DEADLINE_MS,
    flushMs: FLUSH_MS,
    async take(takes, deadlineMs): Promise<Answer> {
      const keys = [REPLICAS, ...takes.map(({ limit }) => `{hopgate}:${limit.kind}:${limit.id}`)];
      const args = [replica, leaseMs, ...takes.flatMap(argumentsOf)];
      const answer = (await cache.run(TAKE, keys, args, deadlineMs)) as readonly number[];
      const [processes = 1, at = 0, ...rest] = answer;
      const taken = takes.map((_, i) => {
        const [granted = 0, wait = 0, offset = 0, refunded = 0, left = 0] = rest.slice(i * 5);
        return { granted, wait, offset, refunded, wraps: 0, left };
      });
      return { processes, at, taken };
    },
  };
}

function argumentsOf(take: Take): readonly (string | number)[] {
  const { limit, need, ahead, debt, refunds, given, held } = take;
  if (limit.kind === 'slots') return ['s', limit.amount, need, ahead, given, held];
  const parts = refunds.flatMap((refund) => refund.slice(0, 5));
  return ['r', limit.amount, limit.periodMs, need, ahead, debt, refunds.length, ...parts];
}
