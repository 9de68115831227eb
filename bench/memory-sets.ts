/** Labelled sets for the memory: LoCoMo's own files, sets in the unified form, and the project's own set. */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { NewMemoryEvent } from '../src/conversation/memory.ts';
import { LANGUAGES } from '../test/features/memory/recall-languages.ts';
import { EVENTS, QUESTIONS } from '../test/features/memory/recall-set.ts';

export interface LabelledQuestion {
  readonly text: string;
  readonly category: string;
  /** Ids of the events that answer it. */
  readonly evidence: readonly string[];
}

export interface LabelledSpace {
  readonly name: string;
  /** What is tuned on, and what only tells whether that holds elsewhere. */
  readonly split: 'dev' | 'validation';
  readonly events: readonly (NewMemoryEvent & { readonly id: string })[];
  readonly questions: readonly LabelledQuestion[];
}

export interface LabelledSet {
  readonly name: string;
  readonly spaces: readonly LabelledSpace[];
}

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
/** LoCoMo's conversations that nothing was tuned on. */
const LOCOMO_VALIDATION = new Set(['44', '47', '48', '49', '50']);
const LOCOMO_CATEGORIES = ['', 'multi-hop', 'temporal', 'open-domain', 'single-hop', 'adversarial'];

// biome-ignore lint/suspicious/noExplicitAny: files of others, read as they are
type Raw = any;

/** The sets under a path: a file or a folder. Without a path the project's own sets. */
export function labelledSets(path: string | undefined): readonly LabelledSet[] {
  if (path === undefined) return [ownSet(), languagesSet()];
  const sets = new Map<string, LabelledSpace[]>();
  for (const file of jsonFiles(path)) {
    const content: Raw = JSON.parse(readFileSync(file, 'utf8'));
    const [name, spaces] = Array.isArray(content.spaces)
      ? [String(content.name), content.spaces.map(unifiedSpace)]
      : ['locomo', locomoSpaces(content, basename(file, '.json'))];
    sets.set(name, [...(sets.get(name) ?? []), ...spaces]);
  }
  return [...sets].map(([name, spaces]) => ({ name, spaces }));
}

function jsonFiles(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => {
      const inner = join(path, name);
      return statSync(inner).isDirectory() || name.endsWith('.json') ? jsonFiles(inner) : [];
    });
}

/** `{name, split?, events: [{id, text, source, time}], questions: [{text, gold or evidence, category or type}]}`. */
const unifiedSpace = ({ name, split, events, questions }: Raw): LabelledSpace => ({
  name,
  split: split === 'val' || split === 'validation' ? 'validation' : 'dev',
  events: events.map(({ id, text, source, time }: Raw) => ({ id, text, source, time })),
  questions: questions.map(({ text, gold, evidence, category, type }: Raw) => ({
    text,
    evidence: gold ?? evidence,
    category: String(category ?? type ?? ''),
  })),
});

/** One conversation, alone in its file, or several as they are published (`locomo10.json`). */
function locomoSpaces(content: Raw, name: string): readonly LabelledSpace[] {
  if (Array.isArray(content)) {
    return content.flatMap(({ sample_id, conversation, qa }: Raw, at) =>
      locomoSpaces({ ...conversation, qa }, String(sample_id ?? at).replace(/^conv-/, '')),
    );
  }
  const events = Object.keys(content)
    .filter((key) => /^session_\d+$/.test(key))
    .flatMap((key) => {
      const began = locomoTime(content[`${key}_date_time`]);
      return content[key].map(({ speaker, dia_id, text, blip_caption }: Raw, at: number) => ({
        id: idOf(dia_id),
        source: speaker,
        text: blip_caption === undefined ? text : `${text}\n[photo: ${blip_caption}]`,
        time: began + at * MINUTE,
      }));
    });
  const known = new Set(events.map(({ id }) => id));
  const questions = content.qa.flatMap(({ question, evidence = [], category }: Raw) => {
    const ids = [...new Set<string>(evidence.flatMap((one: string) => one.split(/[;\s]+/)))]
      .map(idOf)
      .filter((id) => known.has(id));
    return ids.length === 0
      ? []
      : [{ text: question, evidence: ids, category: LOCOMO_CATEGORIES[category]! }];
  });
  return [{ name, split: LOCOMO_VALIDATION.has(name) ? 'validation' : 'dev', events, questions }];
}

/** `D1:13` as an event's id. */
const idOf = (turn: string) => `mem_${turn.toLowerCase().replace(/[^0-9a-z]+/g, 'z')}`;

/** `1:56 pm on 8 May, 2023`. */
function locomoTime(said: string): number {
  const [, hour, minute, half, date] = /(\d+):(\d+) (am|pm) on (.*)/.exec(said)!;
  const hours = (Number(hour) % 12) + (half === 'pm' ? 12 : 0);
  return Date.parse(`${date} UTC`) + (hours * 60 + Number(minute)) * MINUTE;
}

function ownSet(): LabelledSet {
  const end = Date.parse('2026-11-20T12:00:00Z');
  const ids = new Map<string, string>();
  const events = EVENTS.map(([source, text, name], at) => {
    const id = `mem_${at}`;
    if (name !== undefined) ids.set(name, id);
    return { id, source, text, time: end - ((EVENTS.length - at) * DAY) / 2 };
  });
  const questions = QUESTIONS.map(([text, ...names]) => ({
    text,
    evidence: names.map((name) => ids.get(name)!),
    category: /\p{Script=Han}/u.test(text) ? 'Chinese' : 'English',
  }));
  return { name: 'own', spaces: [{ name: 'group', split: 'dev', events, questions }] };
}

/** One space for each language. */
function languagesSet(): LabelledSet {
  const end = Date.parse('2026-11-20T12:00:00Z');
  return {
    name: 'languages',
    spaces: LANGUAGES.map(({ language, events, questions }) => ({
      name: language,
      split: 'dev',
      events: events.map(({ source, text }, at) => ({
        id: `mem_${at}`,
        source,
        text,
        time: end - ((events.length - at) * DAY) / 2,
      })),
      questions: questions.map(({ text, name }) => ({
        text,
        evidence: [`mem_${events.findIndex((event) => event.name === name)}`],
        category: language,
      })),
    })),
  };
}
