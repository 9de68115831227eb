/** The script of shared rests: news go in, all that rests comes out, and each call is a sign of life. */

import { script } from '../../state/engines/engine.ts';

/**
 * KEYS: the rests, the replicas. ARGV: the name of this replica, milliseconds for which it counts (0: it leaves), the
 * most rests, then for each piece of news: its name, milliseconds for which it counts, its text.
 * Answers: number of replicas, then for each piece of news that counts: its name, milliseconds left, its text.
 */
export const RESTS = script(`
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
