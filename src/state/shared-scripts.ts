/** The scripts of shared entries: entries of a group are written only while its epoch lasts, and are deleted with it. */

import { script } from './engines/engine.ts';

/** What is known of a group stays longer than any entry, in milliseconds. */
export const GROUP_MS = 90 * 24 * 3_600_000;

/** KEYS: the epoch of a group. ARGV: an epoch for a group that has none, milliseconds. Answers the epoch that holds. */
export const EPOCH = script(`
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
return redis.call('GET', KEYS[1])
`);

/**
 * KEYS: the epoch of the group, the set of its keys, the key. ARGV: the epoch as the writer knows it, milliseconds of
 * the entry, those of the group, 1: a value that is there stays, the value.
 * Answers 1: written; 0: the group has another epoch; 2: a value was there.
 */
export const PUT_IN_GROUP = script(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[4] == '1' and redis.call('EXISTS', KEYS[3]) == 1 then return 2 end
redis.call('SET', KEYS[3], ARGV[5], 'PX', ARGV[2])
redis.call('SADD', KEYS[2], KEYS[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
`);

/** KEYS: the epoch of the group, the set of its keys. ARGV: the next epoch, milliseconds. */
export const ERASE_GROUP = script(`
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
for _, key in ipairs(redis.call('SMEMBERS', KEYS[2])) do redis.call('DEL', key) end
return redis.call('DEL', KEYS[2])
`);

/** KEYS: entries that were used. ARGV: milliseconds that they stay from now on. */
export const KEEP = script(`
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
return 0
`);
