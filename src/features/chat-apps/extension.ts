/** Reads a chat app's extension of a request: the member `hopgate` of the body, checked field by field. */

import type { JsonObject } from '../../lib/json/json.ts';
import {
  anyObject,
  booleanField,
  choiceField,
  type Field,
  idField,
  integerField,
  invalidField,
  listField,
  objectWith,
  textField,
  timeField,
  timeZoneField,
} from './field-checks.ts';
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
