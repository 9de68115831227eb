/** Reads a chat app's extension of a request: the member `hopgate` of the body, checked field by field. */

import { invalid } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { isTimeZone } from '../../lib/text/calendar.ts';
import { LOCALES, type Locale, TEXT_NAMES, type Texts } from './texts.ts';

export interface ChatMember {
  readonly id: string;
  readonly name: string;
}

/** The current round of a chat: its members and the messages since the model last spoke. */
export interface ChatRound {
  readonly mode: 'group' | 'single';
  /** The member that the model speaks for. */
  readonly self?: ChatMember;
  readonly members: readonly ChatMember[];
  /** The others' messages of this round as one text; '' for none. */
  readonly others: string;
  /** The app sent the others' messages separately, even if there are none. */
  readonly othersSeparate: boolean;
  /** The others' messages, where the app sent a list. */
  readonly messages: readonly ChatMessage[];
  /** Ids of the mentioned members. */
  readonly mentions: readonly string[];
  readonly locale?: Locale;
  readonly texts?: Partial<Texts>;
}

export interface ChatMessage {
  /** The sender's name, '' where the app gave none. */
  readonly from: string;
  readonly text: string;
  /** Milliseconds since 1970: when it was said, where the app says so. */
  readonly time?: number;
}

export interface MemorySettings {
  readonly space: string;
  readonly recall: 'always' | 'auto' | 'off';
  readonly maxRecalls?: number;
  /** Events per recall. */
  readonly limit: number;
  /** Limit for the events of a recall. */
  readonly maxTokens?: number;
  /** Where "yesterday" is a day. */
  readonly timeZone?: string;
  readonly capture: boolean;
  /** The app's name for this turn: captured again, it takes the place of what was captured before. */
  readonly turn?: string;
  /** The model may forget events. */
  readonly forget: boolean;
}

export interface Extension {
  readonly round?: ChatRound;
  readonly memory?: MemorySettings;
  readonly toolEvents: boolean;
}

const ROOT = 'hopgate';
const DEFAULT_LIMIT = 8;

/** @throws GatewayError invalid_request that names the field */
export function readExtension(value: JsonObject): Extension {
  const { given } = fieldsOf({ at: ROOT, value }, ['conversation', 'memory', 'tool_events']);
  return {
    round: given('conversation', readRound),
    memory: given('memory', readMemory),
    toolEvents: given('tool_events', booleanField) ?? false,
  };
}

const ROUND = ['mode', 'self', 'members', 'others', 'mentions', 'locale', 'texts'];

function readRound(field: Field): ChatRound {
  const { under, given } = fieldsOf(field, ROUND);
  const mode = choiceField(under('mode'), ['group', 'single'] as const);
  const self = given('self', readMember);
  if (mode === 'group' && self === undefined) {
    const problem = 'is required in a group: the member that the model speaks for, {id, name}.';
    throw invalidField(`${field.at}.self`, problem);
  }
  const members = given('members', listOf(readMember)) ?? [];
  const names = new Map([...members, ...(self ? [self] : [])].map((one) => [one.id, one.name]));
  const others = given('others', (one) =>
    typeof one.value === 'string' ? one.value : readMessages(one, names),
  );
  const messages = typeof others === 'string' ? [] : (others ?? []);
  return {
    mode,
    self,
    members,
    others:
      typeof others === 'string'
        ? others
        : messages.map(({ from, text }) => (from === '' ? text : `${from}: ${text}`)).join('\n'),
    othersSeparate: others !== undefined,
    messages,
    mentions: given('mentions', listOf(idField)) ?? [],
    locale: given('locale', (one) => choiceField(one, LOCALES)),
    texts: given('texts', readTexts),
  };
}

/** A member; fields other than id and name are ignored. */
function readMember(field: Field): ChatMember {
  if (typeof field.value === 'string' || typeof field.value === 'number') {
    const own = idField(field);
    return { id: own, name: own };
  }
  const { at } = field;
  const { id: given, name } = anyObject(field);
  const own = idField({ at: `${at}.id`, value: given });
  return { id: own, name: name === undefined ? own : textField({ at: `${at}.name`, value: name }) };
}

function readMessages(field: Field, names: ReadonlyMap<string, string>): readonly ChatMessage[] {
  if (!Array.isArray(field.value))
    throw invalidField(field.at, 'must be text or a list of messages.');
  return listOf((one): ChatMessage => {
    if (typeof one.value === 'string') return { from: '', text: textField(one) };
    const { at } = one;
    const message = anyObject(one);
    const from = message.from ?? message.name ?? message.id;
    const sender = from === undefined ? '' : idField({ at: `${at}.from`, value: from });
    return {
      from: names.get(sender) ?? sender,
      text: textField({ at: `${at}.text`, value: message.text ?? message.content }),
      ...(message.time !== undefined && {
        time: timeField({ at: `${at}.time`, value: message.time }),
      }),
    };
  })(field);
}

function readTexts(field: Field): Partial<Texts> {
  const { under } = fieldsOf(field, TEXT_NAMES);
  const given = Object.keys(field.value as JsonObject);
  return Object.fromEntries(given.map((key) => [key, textField(under(key))]));
}

/** The length limit of the memory for a space's name. */
const SPACE_LENGTH = 200;

function readSpace(field: Field): string {
  const space = textField(field);
  if (space.length > SPACE_LENGTH) {
    throw invalidField(field.at, `must have at most ${SPACE_LENGTH} characters.`);
  }
  if (!space.isWellFormed() || /\p{Cc}/u.test(space)) {
    throw invalidField(field.at, 'must be text without control characters.');
  }
  return space;
}

function readMemory(field: Field): MemorySettings {
  const { under, given } = fieldsOf(field, [
    ...['space', 'recall', 'max_recalls', 'limit', 'max_tokens', 'time_zone'],
    ...['capture', 'turn', 'forget'],
  ]);
  const wholeNumber = (min: number, max: number) => (one: Field) => integerField(one, min, max);
  return {
    space: readSpace(under('space')),
    recall: given('recall', (one) => choiceField(one, ['always', 'auto', 'off'])) ?? 'auto',
    maxRecalls: given('max_recalls', wholeNumber(1, 100)),
    limit: given('limit', wholeNumber(1, 100)) ?? DEFAULT_LIMIT,
    maxTokens: given('max_tokens', wholeNumber(0, 1_000_000)),
    timeZone: given('time_zone', timeZoneField),
    capture: given('capture', booleanField) ?? false,
    turn: given('turn', idField),
    forget: given('forget', booleanField) ?? false,
  };
}

/** A value with its path for error messages. */
interface Field {
  readonly at: string;
  readonly value: Json | undefined;
}

/** @param problem the rest of the sentence, such as `must be a list.` */
const invalidField = (at: string, problem: string) => invalid(`'${at}' ${problem}`, at);

/** The fields of an object that has no others. @throws GatewayError invalid_request */
function fieldsOf({ at, value }: Field, keys: readonly string[]) {
  const object = anyObject({ at, value });
  for (const key of Object.keys(object)) {
    if (!keys.includes(key)) {
      throw invalidField(`${at}.${key}`, `is not known. Known fields: ${keys.join(', ')}.`);
    }
  }
  const under = (key: string): Field => ({ at: `${at}.${key}`, value: object[key] });
  /** Undefined: it is not given. */
  const given = <T>(key: string, read: (field: Field) => T): T | undefined =>
    object[key] === undefined ? undefined : read(under(key));
  return { under, given };
}

/** An object with any keys. @throws GatewayError invalid_request */
function anyObject({ at, value }: Field): JsonObject {
  if (!isObject(value)) throw invalidField(at, 'must be an object.');
  return value;
}

const listOf =
  <T>(read: (field: Field) => T) =>
  ({ at, value }: Field): readonly T[] => {
    if (!Array.isArray(value)) throw invalidField(at, 'must be a list.');
    return value.map((one: Json, i) => read({ at: `${at}[${i}]`, value: one }));
  };

/** A string that is not blank. */
function textField({ at, value }: Field): string {
  if (value === undefined) throw invalidField(at, 'is missing: it must be a string.');
  if (typeof value !== 'string') throw invalidField(at, 'must be a string.');
  if (value.trim() === '') throw invalidField(at, 'must not be empty.');
  return value;
}

/** An id: text, or a whole number (a database row), which is compared as text. */
function idField(field: Field): string {
  const { value } = field;
  return typeof value === 'number' && Number.isSafeInteger(value)
    ? String(value)
    : textField(field);
}

function booleanField({ at, value }: Field): boolean {
  if (typeof value !== 'boolean') throw invalidField(at, 'must be true or false.');
  return value;
}

function integerField({ at, value }: Field, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw invalidField(at, `must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

function choiceField<T extends string>({ at, value }: Field, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw invalidField(at, `must be one of ${choices.join(', ')}.`);
  return found;
}

/** Milliseconds since 1970, or ISO 8601. */
function timeField({ at, value }: Field): number {
  const time = typeof value === 'string' ? Date.parse(value) : value;
  if (typeof time === 'number' && Number.isFinite(time) && time >= 0) return time;
  throw invalidField(at, 'must be milliseconds since 1970 or an ISO 8601 time.');
}

function timeZoneField(field: Field): string {
  const name = textField(field);
  if (name.length <= 100 && isTimeZone(name)) return name;
  throw invalidField(field.at, 'must be an IANA time zone, e.g. Europe/Berlin.');
}
