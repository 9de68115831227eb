/** Stored responses in the cache for ten minutes: written before the client has its answer, read with their chain in one trip. */

import { type KeyValue, script } from '../../state/engines/engine.ts';
import type { Named } from './response-tables.ts';
import { type ResponseRow, type RowKey, rowOf, rowText } from './stored-response.ts';

/** What the cache says. */
export interface CachedRows {
  /** By id. */
  readonly rows: ReadonlyMap<string, ResponseRow>;
  /** Was the response deleted or erased? False too where the cache does not know. */
  isGone(id: string): boolean;
}

/** Since its last use. */
export const CACHED_MS = 600_000;
/** An erasure voids entries that are still on their way, and is remembered longer than any exchange takes. */
const ERASED_MS = 3_600_000;
const READ_MS = 100;
const WRITE_MS = 100;
/** Characters; a larger entry is in the database alone. */
const MAX_ENTRY = 4 * 2 ** 20;
/** Of one read; what is beyond that comes from the database. */
const MAX_LINKS = 1000;
const MAX_BYTES = 8 * 2 ** 20;
const PAGE = 500;

const ENTRY = '{hopgate}:response:';
const ITEM = '{hopgate}:response-item:';
const ERASED = '{hopgate}:response-erased:';
const GONE = '!';

// An entry is "<key of the previous one or -> <space or -> <began> <row>"; that of a deleted response is "!".
const READ = script(`
local ttl, heads, walks = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local most_links, most_bytes = tonumber(ARGV[4]), tonumber(ARGV[5])
local out, seen, bytes, links = {}, {}, 0, 0
local function read(hash, on)
  while hash and hash ~= '-' and not seen[hash] and links < most_links and bytes < most_bytes do
    seen[hash] = true
    local value = redis.call('GET', '${ENTRY}' .. hash)
    if not value then return end
    local previous, space, began = string.match(value, '^(%S+) (%S+) (%S+) ')
    if previous then
      local at = space ~= '-' and redis.call('GET', '${ERASED}' .. space)
      if at and tonumber(at) >= tonumber(began) then
        value, previous = '${GONE}', nil
      else
        redis.call('PEXPIRE', '${ENTRY}' .. hash, ttl)
      end
    end
    out[#out + 1] = hash
    out[#out + 1] = value
    links = links + 1
    bytes = bytes + #value
    hash = on and previous
  end
end
for i = 1, #KEYS do
  if i <= heads then
    read(string.sub(KEYS[i], ${ENTRY.length + 1}), walks)
  else
    read(redis.call('GET', KEYS[i]), false)
  end
end
return out
`);

// A response that was deleted, or begun before its space was erased, does not come back.
const WRITE = script(`
local ttl, value, hash, space, began = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if redis.call('GETRANGE', KEYS[1], 0, 0) == '${GONE}' then return 0 end
if space ~= '-' then
  local at = redis.call('GET', '${ERASED}' .. space)
  if at and tonumber(at) >= tonumber(began) then return 0 end
end
redis.call('SET', KEYS[1], value, 'PX', ttl)
for i = 2, #KEYS do redis.call('SET', KEYS[i], hash, 'PX', ttl) end
return 1
`);

const REMOVE = script(`
for i = 1, #KEYS do redis.call('SET', KEYS[i], '${GONE}', 'PX', ARGV[1]) end
return #KEYS
`);

const FORGET = script(`
for i = 1, #KEYS do
  if redis.call('GETRANGE', KEYS[i], 0, 0) ~= '${GONE}' then redis.call('DEL', KEYS[i]) end
end
return #KEYS
`);

const ERASE = script(`
local at = redis.call('GET', KEYS[1])
if not at or tonumber(at) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1
`);

const hashOf = (owner: string, id: string): string =>
  new Bun.CryptoHasher('sha256').update(`${owner}\0${id}`).digest('base64url').slice(0, 32);

export class ResponseCache {
  constructor(private readonly cache: KeyValue) {}

  /** One trip; of items the responses that have them. @throws EngineAway */
  async read({ responses, chains, items }: Named, owner: string): Promise<CachedRows> {
    const heads = responses.map((id) => ENTRY + hashOf(owner, id));
    const keys = [...heads, ...items.map((item) => ITEM + hashOf(owner, item))];
    const args = [CACHED_MS, heads.length, chains ? 1 : 0, MAX_LINKS, MAX_BYTES];
    const flat = (await this.cache.run(READ, keys, args, READ_MS)) as readonly string[];
    const rows = new Map<string, ResponseRow>();
    const gone = new Set<string>();
    for (let i = 0; i < flat.length; i += 2) {
      const [hash, value] = [flat[i]!, flat[i + 1]!];
      if (value === GONE) gone.add(hash);
      else {
        const row = rowOf(value.split(' ').slice(3).join(' '));
        if (row !== undefined) rows.set(row.id, row);
      }
    }
    return { rows, isGone: (id) => gone.size > 0 && gone.has(hashOf(owner, id)) };
  }

  /** @returns false: it is too large for the cache. @throws EngineAway */
  async write(row: ResponseRow): Promise<boolean> {
    const { owner, id, previous, space, began, itemIds } = row;
    const hash = hashOf(owner, id);
    const before = previous === null ? '-' : hashOf(owner, previous);
    const value = `${before} ${space ?? '-'} ${began} ${rowText(row)}`;
    if (value.length > MAX_ENTRY) return false;
    const keys = [ENTRY + hash, ...itemIds.map((item) => ITEM + hashOf(owner, item))];
    await this.cache.run(WRITE, keys, [CACHED_MS, value, hash, space ?? '-', began], WRITE_MS);
    return true;
  }

  /** The database has newer ones. @throws EngineAway */
  async forget(rows: readonly RowKey[]): Promise<void> {
    const keys = rows.map(({ owner, id }) => ENTRY + hashOf(owner, id));
    await this.cache.run(FORGET, keys, [], WRITE_MS);
  }

  /** @throws EngineAway */
  async remove(rows: readonly RowKey[]): Promise<void> {
    for (let from = 0; from < rows.length; from += PAGE) {
      const keys = rows.slice(from, from + PAGE).map(({ owner, id }) => ENTRY + hashOf(owner, id));
      await this.cache.run(REMOVE, keys, [CACHED_MS], WRITE_MS);
    }
  }

  /** Voids what was begun until then with this space. @param at by the clock of the database. @throws EngineAway */
  async erase(space: string, at: number): Promise<void> {
    await this.cache.run(ERASE, [ERASED + space], [at, ERASED_MS], WRITE_MS);
  }
}
