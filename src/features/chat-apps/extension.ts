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
  const {
    conversation,
    memory,
    tool_events: events,
  } = objectWith({ at: ROOT, value }, ['conversation', 'memory', 'tool_events']);
  return {
    ...(conversation === undefined
      ? {}
      : { round: readRound({ at: `${ROOT}.conversation`, value: conversation }) }),
    ...(memory === undefined
      ? {}
      : { memory: readMemory({ at: `${ROOT}.memory`, value: memory }) }),
    toolEvents: events !== undefined && booleanField({ at: `${ROOT}.tool_events`, value: events }),
  };
}

function readRound(field: Field): ChatRound {
  const { at } = field;
  const fields = objectWith(field, [
    'mode',
    'self',
    'members',
    'others',
    'mentions',
    'locale',
    'texts',
  ]);
  const under = (key: string): Field => ({ at: `${at}.${key}`, value: fields[key] });
  const given = (key: string) => fields[key] !== undefined;
  const mode = choiceField(under('mode'), ['group', 'single'] as const);
  const self = given('self') ? readMember(under('self')) : undefined;
  if (mode === 'group' && self === undefined) {
    throw invalidField(
      `${at}.self`,
      'is required in a group: the member that the model speaks for, {id, name}.',
    );
  }
  const members = given('members')
    ? listField(under('members')).map((value, i) =>
        readMember({ at: `${at}.members[${i}]`, value }),
      )
    : [];
  const names = new Map([...members, ...(self ? [self] : [])].map((one) => [one.id, one.name]));
  const messages =
    given('others') && typeof fields.others !== 'string'
      ? readMessages(under('others'), names)
      : [];
  return {
    mode,
    ...(self === undefined ? {} : { self }),
    members,
    others:
      typeof fields.others === 'string'
        ? fields.others
        : messages.map(({ from, text }) => (from === '' ? text : `${from}: ${text}`)).join('\n'),
    othersSeparate: given('others'),
    messages,
    mentions: given('mentions')
      ? listField(under('mentions')).map((value, i) =>
          idField({ at: `${at}.mentions[${i}]`, value }),
        )
      : [],
    ...(given('locale') ? { locale: choiceField(under('locale'), LOCALES) } : {}),
    ...(given('texts') ? { texts: readTexts(under('texts')) } : {}),
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
  return listField(field).map((value, i): ChatMessage => {
    const at = `${field.at}[${i}]`;
    if (typeof value === 'string') return { from: '', text: textField({ at, value }) };
    const message = anyObject({ at, value });
    const content = message.text ?? message.content;
    const from = message.from ?? message.name ?? message.id;
    const sender = from === undefined ? '' : idField({ at: `${at}.from`, value: from });
    return {
      from: names.get(sender) ?? sender,
      text: textField({ at: `${at}.text`, value: content }),
      ...(message.time === undefined
        ? {}
        : { time: timeField({ at: `${at}.time`, value: message.time }) }),
    };
  });
}

function readTexts(field: Field): Partial<Texts> {
  const fields = objectWith(field, TEXT_NAMES);
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      textField({ at: `${field.at}.${key}`, value }),
    ]),
  );
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
  const { at } = field;
  const fields = objectWith(field, [
    'space',
    'recall',
    'max_recalls',
    'limit',
    'max_tokens',
    'time_zone',
    'capture',
    'turn',
    'forget',
  ]);
  const under = (key: string): Field => ({ at: `${at}.${key}`, value: fields[key] });
  const { recall, max_recalls: max, limit, capture, turn, forget } = fields;
  const { max_tokens: maxTokens, time_zone: timeZone } = fields;
  return {
    space: readSpace(under('space')),
    recall: recall === undefined ? 'auto' : choiceField(under('recall'), ['always', 'auto', 'off']),
    ...(max === undefined ? {} : { maxRecalls: integerField(under('max_recalls'), 1, 100) }),
    limit: limit === undefined ? DEFAULT_LIMIT : integerField(under('limit'), 1, 100),
    ...(maxTokens === undefined
      ? {}
      : { maxTokens: integerField(under('max_tokens'), 0, 1_000_000) }),
    ...(timeZone === undefined ? {} : { timeZone: timeZoneField(under('time_zone')) }),
    capture: capture !== undefined && booleanField(under('capture')),
    ...(turn === undefined ? {} : { turn: idField(under('turn')) }),
    forget: forget !== undefined && booleanField(under('forget')),
  };
}

/** A value with its path for error messages. */
interface Field {
  readonly at: string;
  readonly value: Json | undefined;
}

/** @param problem the rest of the sentence, such as `must be a list.` */
const invalidField = (at: string, problem: string) => invalid(`'${at}' ${problem}`, at);

/** An object with no keys but these. @throws GatewayError invalid_request */
function objectWith({ at, value }: Field, keys: readonly string[]): JsonObject {
  const object = anyObject({ at, value });
  for (const key of Object.keys(object)) {
    if (!keys.includes(key)) {
      throw invalidField(`${at}.${key}`, `is not known. Known fields: ${keys.join(', ')}.`);
    }
  }
  return object;
}

/** An object with any keys. @throws GatewayError invalid_request */
function anyObject({ at, value }: Field): JsonObject {
  if (!isObject(value)) throw invalidField(at, 'must be an object.');
  return value;
}

function listField({ at, value }: Field): readonly Json[] {
  if (!Array.isArray(value)) throw invalidField(at, 'must be a list.');
  return value as readonly Json[];
}

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
