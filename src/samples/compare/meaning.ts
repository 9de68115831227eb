/** Compares two conversations by what they say: what their protocols only write differently is one line for each part. */

import type { Note } from '../../conversation/notes.ts';
import type { Conversation, ProtocolName, Settings } from '../../conversation/types.ts';
import { canonicalText, type Json } from '../../lib/json/json.ts';
import type { Change } from '../../lib/json/json-diff.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { pointersIn } from '../../lib/json/pointer.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import { pairEqual } from '../../lib/text/text-diff.ts';
import {
  contextOf,
  EMPTY,
  type ReadingParts,
  readableBody,
  readReply,
  readRequest,
} from '../decode/decode-body.ts';
import { type PlacedRule, placedRules, rulesBehind } from '../replay/explain.ts';
import type { SampleMeta, SampleStore } from '../sample.ts';
import type { MeaningChange, MeaningDiff, MeaningPart } from './types.ts';
import {
  instructions,
  messageUnits,
  type Said,
  sameJoined,
  toolUnits,
  type Unit,
} from './units.ts';

/** A decoded body. */
export interface Side extends Said {
  readonly protocol: ProtocolName;
  /** Of an answer: how it ended. */
  readonly finish?: string;
}

/** @param answers both are answers, not requests */
export function* compareMeaning(
  a: Side,
  b: Side,
  notes: readonly Note[],
  answers = false,
): Steps<MeaningDiff> {
  const rules = new RuleFinder(notes);
  const translated = a.protocol !== b.protocol;
  const form = translated ? 'the same, in another form' : 'the same';
  const tools = [yield* toolUnits(a), yield* toolUnits(b)] as const;
  const units = [yield* messageUnits(a), yield* messageUnits(b)] as const;
  const parts = [
    modelPart(a, b, rules),
    systemPart(a, b, rules, form),
    yield* unitPart('tools', tools, rules, form),
    yield* unitPart(answers ? 'answer' : 'messages', units, rules, form),
    answers ? endPart(a, b) : settingsPart(a, b, rules),
  ];
  return {
    parts: parts.filter((part) => part !== undefined),
    translated,
    otherRules: rules.others,
  };
}

const changesText = (changes: readonly MeaningChange[]) =>
  (['changed', 'added', 'removed'] as const)
    .flatMap((kind) => {
      const count = changes.filter((one) => one.kind === kind).length;
      return count === 0 ? [] : [`${count} ${kind}`];
    })
    .join(', ');

function modelPart(a: Side, b: Side, rules: RuleFinder): MeaningPart | undefined {
  const [before, after] = [a.conversation.model, b.conversation.model];
  if (before === '' && after === '') return undefined;
  if (before === after) return { name: 'model', title: `Model: ${after}`, same: 1, changes: [] };
  const found = rules.of('changed', ['/model'], '');
  const change = { kind: 'changed', what: 'model', before, after, rules: found } as const;
  return { name: 'model', title: `Model: ${before} → ${after}`, same: 0, changes: [change] };
}

/** The instructions are one text: protocols cut it into pieces, and one of them puts it in front of the messages. */
function systemPart(a: Side, b: Side, rules: RuleFinder, form: string): MeaningPart | undefined {
  const [before, after] = [instructions(a), instructions(b)];
  if (before.length === 0 && after.length === 0) return undefined;
  const part = { name: 'system', same: 0, changes: [] } as const;
  if (sameJoined(before, after)) return { ...part, same: 1, title: `System prompt: ${form}` };
  const kind = before.length === 0 ? 'added' : after.length === 0 ? 'removed' : 'changed';
  const texts = {
    ...(before.length > 0 && { before: before.join('\n\n') }),
    ...(after.length > 0 && { after: after.join('\n\n') }),
  };
  const found = rules.of(kind, ['/system', '/messages/0'], texts.after ?? '');
  const change = { kind, what: 'system prompt', ...texts, rules: found } as const;
  return { ...part, title: `System prompt: ${kind}`, changes: [change] };
}

const NOUNS = { tools: 'tool', messages: 'message', answer: 'part' } as const;

function* unitPart(
  name: keyof typeof NOUNS,
  [a, b]: readonly [readonly Unit[], readonly Unit[]],
  rules: RuleFinder,
  form: string,
): Steps<MeaningPart | undefined> {
  if (a.length === 0 && b.length === 0) return undefined;
  const pairs = name === 'tools' ? pairsByName(a, b) : yield* pairsInOrder(a, b);
  const changes: MeaningChange[] = [];
  const changed: Unit[] = [];
  for (const [x, y] of pairs) {
    yield;
    if (isSame(x, y)) continue;
    changes.push(changeOf(x, y, rules));
    if (x !== undefined) changed.push(x);
  }
  const counted = (units: readonly Unit[]) =>
    name === 'messages' ? new Set(units.map(({ message }) => message)).size : units.length;
  const touched = new Set(changed.map((unit) => (name === 'messages' ? unit.message : unit)));
  const all = counted(a);
  const same = all - touched.size;
  const noun = NOUNS[name];
  const several = (count: number) => `${count} ${noun}${count === 1 ? '' : 's'}`;
  const lead = name === 'answer' ? `Answer, ${several(counted(b))}` : several(counted(b));
  const title =
    changes.length === 0
      ? `${lead}: ${form}`
      : `${lead}: ${same === 0 ? '' : `${same} ${form}; `}${changesText(changes)}`;
  return { name, title, same, changes };
}

type Pair = readonly [Unit | undefined, Unit | undefined];

/** Tools have names, so their order says nothing. */
function pairsByName(a: readonly Unit[], b: readonly Unit[]): readonly Pair[] {
  const right = new Map(b.map((unit) => [unit.kind, unit]));
  const left = new Set(a.map(({ kind }) => kind));
  return [
    ...a.map((unit): Pair => [unit, right.get(unit.kind)]),
    ...b.filter(({ kind }) => !left.has(kind)).map((unit): Pair => [undefined, unit]),
  ];
}

/** Equal units are pairs; between two pairs, the next unit of the same kind is what one became. */
function* pairsInOrder(a: readonly Unit[], b: readonly Unit[]): Steps<readonly Pair[]> {
  const equal = yield* pairEqual(
    a.map(({ key }) => key),
    b.map(({ key }) => key),
  );
  const pairs: Pair[] = [];
  let j = 0;
  for (let i = 0; i < a.length; ) {
    let end = i;
    while (end < a.length && equal[end] === -1) end++;
    const to = end < a.length ? equal[end]! : b.length;
    for (const pair of gap(a.slice(i, end), b.slice(j, to))) pairs.push(pair);
    if (end < a.length) pairs.push([a[end], b[to]]);
    i = end + 1;
    j = to + 1;
  }
  for (; j < b.length; j++) pairs.push([undefined, b[j]]);
  return pairs;
}

function gap(left: readonly Unit[], right: readonly Unit[]): readonly Pair[] {
  const waiting = Map.groupBy(right.toReversed(), ({ kind }) => kind);
  const pairs = left.map((unit): Pair => [unit, waiting.get(unit.kind)?.pop()]);
  const taken = new Set(pairs.map(([, unit]) => unit));
  return [
    ...pairs,
    ...right.filter((unit) => !taken.has(unit)).map((unit): Pair => [undefined, unit]),
  ];
}

const isSame = (a: Unit | undefined, b: Unit | undefined) =>
  a !== undefined && b !== undefined && a.key === b.key && sameJoined(a.pieces, b.pieces);

function changeOf(a: Unit | undefined, b: Unit | undefined, rules: RuleFinder): MeaningChange {
  const kind = a === undefined ? 'added' : b === undefined ? 'removed' : 'changed';
  const { label, message, role } = (a ?? b)!;
  const text = (unit: Unit | undefined) => unit?.pieces.join('\n');
  const [before, after] = [text(a), text(b)];
  const named = label.startsWith('tool ') ? `/tools/${label.slice(5)}` : undefined;
  const change = {
    kind,
    what: message === 0 ? label : `message ${message} (${role}), ${label}`,
    ...(a?.at !== undefined && { at: a.at }),
    ...(b?.at !== undefined && { to: b.at }),
    ...(before !== undefined && { before }),
    ...(after !== undefined && { after }),
  } as const;
  const found = rules.of(kind, [named, a?.at, b?.at], after ?? '', label === 'reasoning');
  return { ...change, rules: found };
}

/** Names of settings in the protocols and in notes. */
const SETTING_NAMES: Readonly<Partial<Record<keyof Settings, readonly string[]>>> = {
  maxTokens: ['max_tokens', 'max_completion_tokens', 'max_output_tokens'],
  stop: ['stop', 'stop_sequences'],
  reasoning: ['reasoning', 'thinking', 'effort', 'reasoning_effort'],
  format: ['response_format', 'output_format', 'format'],
  parallelTools: ['parallel_tool_calls'],
  streamUsage: ['stream_options'],
};

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const settingText = (value: Json | undefined) =>
  value === undefined || typeof value === 'string' ? value : JSON.stringify(value, null, 2);

function settingsPart(a: Side, b: Side, rules: RuleFinder): MeaningPart | undefined {
  const left = settingsOf(a.conversation);
  const right = settingsOf(b.conversation);
  const names = [...new Set([...left.keys(), ...right.keys()])];
  if (names.length === 0) return undefined;
  const changes: MeaningChange[] = [];
  for (const name of names) {
    const [x, y] = [left.get(name), right.get(name)];
    if (x !== undefined && y !== undefined && canonicalText(x) === canonicalText(y)) continue;
    const kind = x === undefined ? 'added' : y === undefined ? 'removed' : 'changed';
    const known = memberOf<readonly string[] | undefined>(SETTING_NAMES, name) ?? [snake(name)];
    const [before, after] = [settingText(x), settingText(y)];
    changes.push({
      kind,
      what: known[0]!,
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
      rules: rules.of(
        kind,
        known.map((one) => `/${one}`),
        '',
      ),
    });
  }
  const same = names.length - changes.length;
  const lead = `${names.length} setting${names.length === 1 ? '' : 's'}`;
  const said = changes.length === 0 ? 'the same' : changesText(changes);
  const title = `${lead}: ${same > 0 && changes.length > 0 ? `${same} the same; ` : ''}${said}`;
  return { name: 'settings', title, same, changes };
}

/** How two answers ended, where that differs. */
function endPart({ finish: before = '' }: Side, { finish: after = '' }: Side) {
  if (before === after) return undefined;
  const change = { kind: 'changed', what: 'end', before, after, rules: [] } as const;
  const title = `End: ${before} → ${after}`;
  return { name: 'settings', title, same: 0, changes: [change] } as const;
}

/** Settings by name; fields that only the conversation's own protocol knows, by their own. */
function settingsOf({ settings }: Conversation): ReadonlyMap<string, Json> {
  const { rest = {}, ...known } = JSON.parse(JSON.stringify(settings)) as Record<string, Json> & {
    rest?: Record<string, Json>;
  };
  return new Map([...Object.entries(known), ...Object.entries(rest)]);
}

/** Roots of the same part in different protocols. */
const ROOTS: Readonly<Record<string, string>> = {
  input: 'messages',
  contents: 'messages',
  instructions: 'system',
  systemInstruction: 'system',
  system_instruction: 'system',
};

/** A place with the root that all protocols share. */
const common = (where: string) =>
  where.replace(
    /^(\/?)(\w+)/,
    (_, slash: string, root: string) => slash + (memberOf(ROOTS, root) ?? root),
  );

/** Rules about something that a text does not show, and rules about reasoning. */
const UNSEEN = /^cache_/;
const REASONING = /reasoning|thinking/;

/** A reader of the notes of one exchange. */
class RuleFinder {
  readonly #names: ReadonlySet<string>;
  readonly #seen: readonly PlacedRule[];
  /** The seen ones that are not about reasoning. */
  readonly #plain: readonly PlacedRule[];
  readonly #told = new Set<string>();

  constructor(notes: readonly Note[]) {
    this.#names = new Set(notes.map(({ name }) => name));
    const seen = notes
      .filter(({ name }) => !UNSEEN.test(name))
      .map((note) => (note.where === undefined ? note : { ...note, where: common(note.where) }));
    this.#seen = placedRules(seen);
    this.#plain = placedRules(seen.filter(({ name }) => !REASONING.test(name)));
  }

  /** Rules of a change at any of these places; the first place that has rules decides. @param reasons it may be about reasoning */
  of(
    kind: Change['kind'],
    places: readonly (string | undefined)[],
    text: string,
    reasons = true,
  ): readonly string[] {
    for (const place of places) {
      if (place === undefined) continue;
      const change = { kind, at: common(place), after: text } as const;
      const rules = rulesBehind(change, reasons ? this.#seen : this.#plain);
      if (rules.length === 0) continue;
      for (const rule of rules) this.#told.add(rule);
      return rules;
    }
    return [];
  }

  /** Rules that explained nothing so far. */
  get others(): readonly string[] {
    return [...this.#names].filter((name) => !this.#told.has(name));
  }
}

/** Greatest depth of a node of a conversation in its body. */
const MAX_DEPTH = 12;

const isRequest = (stage: string) => stage.endsWith('request');

/** Undefined where a body cannot be decoded, or one is a request and the other an answer. */
export function* stageMeaning(
  store: SampleStore,
  meta: SampleMeta,
  a: string,
  b: string,
  parts: ReadingParts,
): Steps<MeaningDiff | undefined> {
  if (isRequest(a) !== isRequest(b)) return undefined;
  const left = yield* sideOf(store, meta, a, parts);
  const right = yield* sideOf(store, meta, b, parts);
  if (left === undefined || right === undefined) return undefined;
  return yield* compareMeaning(left, right, meta.notes, !isRequest(a));
}

function* sideOf(
  store: SampleStore,
  meta: SampleMeta,
  stage: string,
  parts: ReadingParts,
): Steps<Side | undefined> {
  try {
    const body = readableBody(store, meta, stage);
    const { protocol } = body;
    if (isRequest(stage)) {
      const { conversation, value, problem } = yield* readRequest(body, parts);
      if (value === undefined || (problem !== undefined && conversation === EMPTY))
        return undefined;
      return { protocol, conversation, places: yield* pointersIn(value, MAX_DEPTH) };
    }
    const context = yield* contextOf(store, meta, body, parts);
    const { reply, problem } = yield* readReply(body, context, parts);
    if (problem !== undefined) return undefined;
    const turns = [{ role: 'assistant', blocks: reply.blocks }] as const;
    const conversation = { ...EMPTY, model: reply.model, turns };
    return { protocol, conversation, places: new Map(), finish: reply.finish };
  } catch {
    // A body that no codec reads is compared as JSON only.
    return undefined;
  }
}
