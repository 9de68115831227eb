/** What a chat app says beside its request: the member `hopgate` of the body, checked field by field. */

import type { JsonObject } from '../../lib/json/json.ts';
import { closed, type Field, flag, id, list, oneOf, open, text, whole, wrong } from './check.ts';
import { LOCALES, type Locale, TEXT_NAMES, type Texts } from './texts.ts';

export interface Member {
  readonly id: string;
  readonly name: string;
}

/** The round of a chat, as the app sees it. */
export interface Talk {
  readonly mode: 'group' | 'single';
  /** Who the model speaks as. */
  readonly self?: Member;
  readonly members: readonly Member[];
  /** What the others have said this round, ready to read; '' for nothing. */
  readonly others: string;
  /** The app says apart what the others said, be it nothing. */
  readonly apart: boolean;
  /** The messages themselves, where the app sent them apart. */
  readonly messages: readonly Message[];
  /** Ids of who was mentioned. */
  readonly mentions: readonly string[];
  readonly locale?: Locale;
  readonly texts?: Partial<Texts>;
}

export interface Message {
  /** A name to read, '' where the app gave none. */
  readonly from: string;
  readonly text: string;
}

export interface MemoryWish {
  readonly space: string;
  readonly recall: 'always' | 'auto' | 'off';
  readonly maxRecalls?: number;
  /** Events per recall. */
  readonly limit: number;
  readonly capture: boolean;
}

export interface Extension {
  readonly talk?: Talk;
  readonly memory?: MemoryWish;
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
  } = closed({ at: ROOT, value }, ['conversation', 'memory', 'tool_events']);
  return {
    ...(conversation === undefined
      ? {}
      : { talk: readTalk({ at: `${ROOT}.conversation`, value: conversation }) }),
    ...(memory === undefined
      ? {}
      : { memory: readMemory({ at: `${ROOT}.memory`, value: memory }) }),
    toolEvents: events !== undefined && flag({ at: `${ROOT}.tool_events`, value: events }),
  };
}

function readTalk(field: Field): Talk {
  const { at } = field;
  const fields = closed(field, [
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
  const mode = oneOf(under('mode'), ['group', 'single'] as const);
  const self = given('self') ? readMember(under('self')) : undefined;
  if (mode === 'group' && self === undefined) {
    throw wrong(`${at}.self`, 'is needed in a group: who the model speaks as, {id, name}.');
  }
  const members = given('members')
    ? list(under('members')).map((value, i) => readMember({ at: `${at}.members[${i}]`, value }))
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
    apart: given('others'),
    messages,
    mentions: given('mentions')
      ? list(under('mentions')).map((value, i) => id({ at: `${at}.mentions[${i}]`, value }))
      : [],
    ...(given('locale') ? { locale: oneOf(under('locale'), LOCALES) } : {}),
    ...(given('texts') ? { texts: readTexts(under('texts')) } : {}),
  };
}

/** What a member is beside id and name is the app's own affair. */
function readMember(field: Field): Member {
  if (typeof field.value === 'string' || typeof field.value === 'number') {
    const own = id(field);
    return { id: own, name: own };
  }
  const { at } = field;
  const { id: given, name } = open(field);
  const own = id({ at: `${at}.id`, value: given });
  return { id: own, name: name === undefined ? own : text({ at: `${at}.name`, value: name }) };
}

function readMessages(field: Field, names: ReadonlyMap<string, string>): readonly Message[] {
  if (!Array.isArray(field.value)) throw wrong(field.at, 'must be text or a list of messages.');
  return list(field).map((value, i): Message => {
    const at = `${field.at}[${i}]`;
    if (typeof value === 'string') return { from: '', text: text({ at, value }) };
    const said = open({ at, value });
    const words = said.text ?? said.content;
    const from = said.from ?? said.name ?? said.id;
    const who = from === undefined ? '' : id({ at: `${at}.from`, value: from });
    return { from: names.get(who) ?? who, text: text({ at: `${at}.text`, value: words }) };
  });
}

function readTexts(field: Field): Partial<Texts> {
  const fields = closed(field, TEXT_NAMES);
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, text({ at: `${field.at}.${key}`, value })]),
  );
}

/** Longest name of a space, as the memory takes it. */
const SPACE_LENGTH = 200;

function readSpace(field: Field): string {
  const space = text(field);
  if (space.length > SPACE_LENGTH) {
    throw wrong(field.at, `must have at most ${SPACE_LENGTH} characters.`);
  }
  if (!space.isWellFormed() || /\p{Cc}/u.test(space)) {
    throw wrong(field.at, 'must be text without control characters.');
  }
  return space;
}

function readMemory(field: Field): MemoryWish {
  const { at } = field;
  const fields = closed(field, ['space', 'recall', 'max_recalls', 'limit', 'capture']);
  const under = (key: string): Field => ({ at: `${at}.${key}`, value: fields[key] });
  const { recall, max_recalls: max, limit, capture } = fields;
  return {
    space: readSpace(under('space')),
    recall: recall === undefined ? 'auto' : oneOf(under('recall'), ['always', 'auto', 'off']),
    ...(max === undefined ? {} : { maxRecalls: whole(under('max_recalls'), 1, 100) }),
    limit: limit === undefined ? DEFAULT_LIMIT : whole(under('limit'), 1, 100),
    capture: capture !== undefined && flag(under('capture')),
  };
}
