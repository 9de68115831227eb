/** Checks of new memory events: names, lengths and limits. */

import { GatewayError, invalid } from '../../conversation/errors.ts';
import type { CapturedTurn, MemoryEvent, NewMemoryEvent } from '../../conversation/memory.ts';
import { sha256Hex } from '../../lib/text/sha256.ts';
import { folded } from './ranking/terms.ts';

export interface MemoryLimits {
  /** Characters of a text. */
  readonly text: number;
  readonly tags: number;
  /** Events of one space. */
  readonly events: number;
  /** Bytes of all texts of all spaces. */
  readonly bytes: number;
  /** Bytes of the texts that one key has put in; 0: no limit of its own. */
  readonly keyBytes: number;
}

export const DEFAULT_LIMITS: MemoryLimits = {
  text: 8000,
  tags: 32,
  events: 100_000,
  bytes: 2 ** 30,
  keyBytes: 2 ** 28,
};

/** An event within the limits, with all fields set. */
export interface CheckedEvent extends Omit<MemoryEvent, 'id' | 'source'> {
  /** The id from an export; generated when left out. */
  readonly id?: string;
  readonly source: string;
}

/** Events of a recall where the caller gives no limit. */
export const DEFAULT_RECALL = 10;
/** The importance of an event that states none. */
export const DEFAULT_IMPORTANCE = 0.5;
/** Characters of a space's name, a source and a tag. */
export const NAME_LENGTH = 200;
const ID = /^mem_[0-9a-z]{1,64}$/;
export const isEventId = (id: string): boolean => ID.test(id);
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/;
/** The end of the year 9999, the last one that an ISO date can name. */
const LAST_TIME = 253_402_300_799_999;

const tooLong = (what: string, param: string, limit: number, key: string) =>
  new GatewayError('too_large', `${what} has more than ${limit} characters (${key}).`, {
    param,
    code: 'memory_limit',
  });

const full = (message: string) =>
  new GatewayError('too_large', message, { code: 'memory_full', retryable: false });

export const spaceIsFull = ({ events }: MemoryLimits): GatewayError =>
  full(`The memory space has its ${events} events (memory.limits.events).`);

export const memoryIsFull = ({ bytes }: MemoryLimits): GatewayError =>
  full(`The memory holds its ${bytes} bytes (memory.limits.bytes).`);

export const shareIsFull = ({ keyBytes }: MemoryLimits): GatewayError =>
  full(
    `The memory holds ${keyBytes} bytes of this key (memory.limits.key_bytes): remove events that it has put in.`,
  );

/**
 * Checks a space's name and returns it. A lone surrogate would clash with other names in the database.
 * @throws GatewayError for names that are empty, too long or contain control characters
 */
export function checkSpace(space: string): string {
  if (space === '') throw invalid('A memory space needs a name.', 'space');
  if (space.length > NAME_LENGTH) {
    throw invalid(`The name of a memory space has at most ${NAME_LENGTH} characters.`, 'space');
  }
  if (space === '.' || space === '..') {
    throw invalid(
      'A memory space cannot be called . or .. because URL paths drop such names.',
      'space',
    );
  }
  if (!space.isWellFormed() || CONTROL.test(space)) {
    throw invalid('The name of a memory space must be text without control characters.', 'space');
  }
  return space;
}

/**
 * @param at the client's name for the event: '' or `events[3]`
 * @throws GatewayError that names the field and the limit
 */
export function checkEvent(
  event: NewMemoryEvent & { readonly id?: string },
  limits: MemoryLimits,
  now: number,
  at = '',
): CheckedEvent {
  const field = (name: string) => (at === '' ? name : `${at}.${name}`);
  const text = event.text.toWellFormed().trim();
  const { id, time = now, source = '', tags = [], importance = DEFAULT_IMPORTANCE } = event;
  if (text === '') throw invalid('An event needs a text.', field('text'));
  if (text.length > limits.text) {
    throw tooLong('The text', field('text'), limits.text, 'memory.limits.text');
  }
  if (id !== undefined && !isEventId(id))
    throw invalid('An id is mem_ followed by up to 64 of 0-9a-z.', field('id'));
  if (!Number.isFinite(time) || time < 0 || time > LAST_TIME) {
    throw invalid('A time is a number of milliseconds since 1970.', field('time'));
  }
  if (source.length > NAME_LENGTH)
    throw tooLong('The source', field('source'), NAME_LENGTH, 'fixed');
  if (tags.length > limits.tags) {
    throw new GatewayError(
      'too_large',
      `An event has at most ${limits.tags} tags (memory.limits.tags).`,
      { param: field('tags'), code: 'memory_limit' },
    );
  }
  const long = tags.findIndex((tag) => tag.length > NAME_LENGTH);
  if (long >= 0) throw tooLong('The tag', field(`tags[${long}]`), NAME_LENGTH, 'fixed');
  if (!(importance >= 0 && importance <= 1)) {
    throw invalid('Importance is a number from 0 to 1.', field('importance'));
  }
  return {
    ...(id !== undefined && { id }),
    time: Math.round(time),
    text,
    source: source.toWellFormed(),
    tags: [...new Set(tags.map((tag) => tag.toWellFormed()))],
    importance,
  };
}

/** Characters of one event of a captured text: a longer text becomes several, each found by its own words. */
const PART = 2000;
/** Characters before the longest end of a part in which a paragraph, a sentence or a word ends it. */
const PART_SLACK = 600;

/** The parts of a text, in order; together they are the text without the blanks between them. */
export function partsOf(text: string, most: number): readonly string[] {
  const parts: string[] = [];
  let rest = text.trim();
  while (rest.length > most) {
    const near = rest.slice(Math.max(1, most - PART_SLACK), most);
    const found = [/\n\s*\n/g, /\n/g, /[.!?。！？](?=\s|\p{Script=Han}|$)/gu, /\s/g].flatMap(
      (ends) => {
        const last = [...near.matchAll(ends)].at(-1);
        return last === undefined ? [] : [last.index + last[0].length];
      },
    )[0];
    let end = found === undefined ? most : most - near.length + found;
    if (/[\ud800-\udbff]/.test(rest[end - 1]!)) end--;
    parts.push(rest.slice(0, Math.max(1, end)).trim());
    rest = rest.slice(Math.max(1, end)).trim();
  }
  if (rest !== '') parts.push(rest);
  return parts.filter((part) => part !== '');
}

/** An event of a conversation, brought within the limits instead of refused: in parts where it is long, none without text. */
export function clampedEvents(
  event: NewMemoryEvent,
  limits: MemoryLimits,
  now: number,
): readonly CheckedEvent[] {
  const { time = now, importance = DEFAULT_IMPORTANCE } = event;
  const right = Number.isFinite(time) && time >= 0 && time <= LAST_TIME;
  const rest = {
    time: right ? time : now,
    importance: Math.min(
      1,
      Math.max(0, Number.isNaN(importance) ? DEFAULT_IMPORTANCE : importance),
    ),
    source: (event.source ?? '').slice(0, NAME_LENGTH),
    tags: (event.tags ?? []).slice(0, limits.tags).map((tag) => tag.slice(0, NAME_LENGTH)),
  };
  return partsOf(event.text.toWellFormed(), Math.min(PART, limits.text)).map((text) =>
    checkEvent({ ...rest, text }, limits, now),
  );
}

/** Equal for events with the same source and text, ignoring case, character width and white space. */
export function fingerprint({ text, source }: CheckedEvent): Uint8Array {
  const words = folded(text).replace(/\s+/g, ' ').trim();
  const hash = new Bun.CryptoHasher('sha256').update(`${folded(source)}\n${words}`).digest();
  return new Uint8Array(hash.subarray(0, 16));
}

/** A captured turn as its events carry it. */
export interface EventTurn {
  /** A hash of the turn's name. */
  readonly name: string;
  /** Fingerprints of all its events, in hexadecimal: other events of the turn are removed. */
  readonly prints: readonly string[];
  readonly isGiven: boolean;
}

export const eventTurn = (
  { name, isGiven }: CapturedTurn,
  events: readonly CheckedEvent[],
): EventTurn => ({
  name: sha256Hex(name).slice(0, 32),
  prints: events.map((event) => Buffer.from(fingerprint(event)).toString('hex')),
  isGiven,
});

/** The text under which an event is indexed. */
export const indexedText = ({
  text,
  source,
  tags,
}: Pick<CheckedEvent, 'text' | 'source' | 'tags'>): string => [source, text, ...tags].join('\n');

/** Characters of a question that are read, from both ends. */
const QUERY_LENGTH = 1000;

/** The part of a question that is looked up. */
export function shortened(query: string): string {
  if (query.length <= 2 * QUERY_LENGTH) return query;
  return `${query.slice(0, QUERY_LENGTH)}\n${query.slice(-QUERY_LENGTH)}`;
}
