/** The file of models: rules and facts as JSON lines, of which each is parsed when it is asked for. */

import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { InputKind, ModelFacts } from '../../conversation/models/model-entry.ts';
import type { Facts } from '../../conversation/profile-facts.ts';
import { globTest } from '../../lib/text/glob.ts';
import { type FilePrice, type ModelPrice, modelPrice } from '../sections/prices.ts';
import {
  answerName,
  bareName,
  compareVersions,
  familyOf,
  plainName,
  withoutRegion,
  withoutVersion,
} from './names.ts';

/** USD per million tokens. */
export interface Price extends ModelPrice {
  /** configuration: from `prices` of the provider; catalogue: from the dated file; family: of a model's predecessor. */
  readonly source: 'configuration' | 'catalogue' | 'family';
}

interface LinePrices extends FilePrice {
  readonly input_text?: number;
  readonly output_text?: number;
}

/** A line about a model; `model-schema.ts` says what each member means. */
interface Line {
  readonly id: string;
  readonly name?: string;
  readonly context?: number;
  readonly output?: number;
  readonly can?: string;
  readonly cannot?: string;
  readonly in?: string;
  readonly cache?: number;
  readonly usd?: LinePrices;
  readonly ends?: string;
  readonly next?: string;
}

/** A model's entry in the file. */
export interface KnownModel {
  readonly id: string;
  readonly facts: ModelFacts;
  readonly price: Price | undefined;
  /** The least prompt tokens that its vendor's cache keeps. */
  readonly leastCache: number | undefined;
  /** The day on which it ends, `2026-07-24`, and what its vendor names as its successor. */
  readonly ends: string | undefined;
  readonly next: string | undefined;
}

interface Section {
  readonly start: number;
  readonly end: number;
  /** Offset of each model's line, by its id in lower case. */
  ids?: Map<string, number>;
  /** The same by the names of Bedrock's answers. */
  answers?: Map<string, number>;
}

/** A model's position in the file, where a maker's own vendors come first. */
interface Place {
  readonly vendor: string;
  readonly at: number;
}

export interface ModelRule {
  readonly test: (model: string) => boolean;
  readonly facts: Facts;
}

const VENDOR = '\n{"vendor":"';
const RULE = '{"rule":';
const ID = '{"id":"';

/** A name that has no region comes before those of regions. */
function answersOf(ids: ReadonlyMap<string, number>): Map<string, number> {
  const answers = new Map<string, number>();
  for (const [id, at] of ids) {
    const name = answerName(id);
    if (name === undefined) continue;
    const isRegional = withoutRegion(id) !== id;
    for (const one of [name, withoutVersion(name)])
      if (!answers.has(one) || !isRegional) answers.set(one, at);
  }
  return answers;
}

export class ModelsFile {
  readonly date: string;
  readonly #vendors = new Map<string, Section>();
  readonly #known = new Map<number, KnownModel>();
  #rules: Map<string, ModelRule[]> | undefined;
  #names: Map<string, Place> | undefined;

  /** @param text as `model-schema.ts` accepts it */
  constructor(private readonly text: string) {
    this.date = (JSON.parse(text.slice(0, text.indexOf('\n'))) as { date: string }).date;
    for (let at = text.indexOf(VENDOR); at >= 0; ) {
      const name = at + VENDOR.length;
      const start = text.indexOf('\n', name) + 1;
      const next = text.indexOf(VENDOR, start - 1);
      const end = next < 0 ? text.length : next + 1;
      this.#vendors.set(text.slice(name, text.indexOf('"', name)), { start, end });
      at = next;
    }
  }

  /** The rules of a profile by the name of a built-in one, in their order. */
  rulesOf(profile: string): readonly ModelRule[] {
    this.#rules ??= this.#readRules();
    return this.#rules.get(profile) ?? NO_RULES;
  }

  #readRules(): Map<string, ModelRule[]> {
    const rules = new Map<string, ModelRule[]>();
    const text = this.text;
    for (let at = text.indexOf('\n') + 1; text.startsWith(RULE, at); ) {
      const end = text.indexOf('\n', at);
      const line = JSON.parse(text.slice(at, end)) as { rule: string; for: string; facts: Facts };
      const rule = { test: globTest(line.rule), facts: line.facts };
      for (const profile of line.for.split(' ')) {
        const own = rules.get(profile);
        if (own === undefined) rules.set(profile, [rule]);
        else own.push(rule);
      }
      at = end + 1;
    }
    return rules;
  }

  /** A model at this very vendor, with or without a date, in any case. */
  at(vendor: string | undefined, model: string): KnownModel | undefined {
    if (vendor === undefined) return undefined;
    const section = this.#vendors.get(vendor);
    if (section === undefined) return undefined;
    section.ids ??= this.#idsOf(section);
    const id = model.toLowerCase();
    const bare = bareName(id);
    for (const name of [id, withoutVersion(id), bare, withoutVersion(bare)]) {
      const at = section.ids.get(name);
      if (at !== undefined) return this.#model(at);
    }
    section.answers ??= answersOf(section.ids);
    const answer = answerName(bare) ?? bare;
    const at = section.answers.get(answer) ?? section.answers.get(withoutVersion(answer));
    return at === undefined ? undefined : this.#model(at);
  }

  /** Some model of the vendor has searches that cost nothing. */
  hasFreeSearches(vendor: string): boolean {
    const { start = 0, end = 0 } = this.#vendors.get(vendor) ?? {};
    const at = this.text.indexOf('"free_searches"', start);
    return at >= 0 && at < end;
  }

  /** A model wherever it is served, its maker first. */
  anywhere(model: string): KnownModel | undefined {
    const place = this.#byName().get(plainName(model));
    return place && this.#model(place.at);
  }

  /**
   * What stands for a model that is newer than the file: the newest of its family, or else of its maker's line. Undefined
   * for names that are known, and for those of no known line.
   * @param vendor only what it serves
   */
  predecessor(model: string, vendor?: string): KnownModel | undefined {
    const plain = plainName(model);
    const names = this.#byName();
    if (names.has(plain)) return undefined;
    const asked = familyOf(plain);
    if (asked.version.length === 0) return undefined;
    let own: Found | undefined;
    let others: Found | undefined;
    for (const [name, { at }] of this.#candidates(vendor)) {
      if (!name.startsWith(asked.line)) continue;
      const { line, family, version } = familyOf(name);
      if (line !== asked.line || version.length === 0) continue;
      const best = family === asked.family ? own : others;
      const newer = best === undefined ? 1 : compareVersions(version, best.version);
      if (newer < 0) continue;
      const found = { version, model: this.#model(at) };
      if (found.model.facts.tools !== true) continue;
      if (family === asked.family) {
        // Prefer the plain name of a version.
        if (newer > 0 || found.model.id.length < own!.model.id.length) own = found;
        // Prefer the most expensive of equals, so that no budget is surprised; it also has the most rules.
      } else if (newer > 0 || inputPrice(found) > inputPrice(others!)) others = found;
    }
    const isNewer = (than: Found | undefined): than is Found =>
      than !== undefined && compareVersions(asked.version, than.version) > 0;
    if (!isNewer(own)) return own === undefined && isNewer(others) ? others.model : undefined;
    const later = isNewer(others) && (others.version[0] ?? 0) > (own.version[0] ?? 0);
    return (later ? others! : own).model;
  }

  #candidates(vendor: string | undefined): Iterable<readonly [string, { readonly at: number }]> {
    if (vendor === undefined) return this.#byName();
    const section = this.#vendors.get(vendor);
    if (section === undefined) return [];
    section.ids ??= this.#idsOf(section);
    return [...section.ids].map(([id, at]) => [plainName(id), { at }] as const);
  }

  /** The models whose plain names begin so. */
  *beginningWith(start: string): Iterable<KnownModel> {
    for (const [name, { at }] of this.#byName()) {
      if (name.startsWith(start)) yield this.#model(at);
    }
  }

  #byName(): ReadonlyMap<string, Place> {
    if (this.#names !== undefined) return this.#names;
    const names = new Map<string, Place>();
    for (const [vendor, section] of this.#vendors) {
      section.ids ??= this.#idsOf(section);
      for (const [id, at] of section.ids) {
        const name = plainName(id);
        // A name comes before its own dated forms.
        if (!names.has(name)) names.set(name, { vendor, at });
      }
    }
    this.#names = names;
    return names;
  }

  #idsOf({ start, end }: Section): Map<string, number> {
    const text = this.text;
    const ids = new Map<string, number>();
    for (let at = start; at < end; at = text.indexOf('\n', at) + 1) {
      const from = at + ID.length;
      ids.set(text.slice(from, text.indexOf('"', from)).toLowerCase(), at);
    }
    return ids;
  }

  #model(at: number): KnownModel {
    let known = this.#known.get(at);
    if (known === undefined) {
      known = modelOf(JSON.parse(this.text.slice(at, this.text.indexOf('\n', at))) as Line);
      this.#known.set(at, known);
    }
    return known;
  }
}

interface Found {
  readonly version: readonly number[];
  readonly model: KnownModel;
}

const inputPrice = ({ model }: Found): number => model.price?.input ?? 0;

const NO_RULES: readonly ModelRule[] = [];

function modelOf(line: Line): KnownModel {
  const {
    id,
    name = id,
    context,
    output,
    can = '',
    cannot = '',
    in: kinds = 'text',
    usd,
    cache,
  } = line;
  return {
    id,
    facts: {
      name,
      ...(context !== undefined && { context }),
      ...(output !== undefined && { output }),
      ...abilityIn('tools', 't', can, cannot),
      ...abilityIn('reasoning', 'r', can, cannot),
      input: kinds.split(' ') as InputKind[],
    },
    price: usd && priceIn(id, usd),
    leastCache: cache,
    ends: line.ends,
    next: line.next,
  };
}

function abilityIn(name: 'tools' | 'reasoning', letter: string, can: string, cannot: string) {
  if (can.includes(letter)) return { [name]: true };
  return cannot.includes(letter) ? { [name]: false } : {};
}

function priceIn(id: string, { input_text, output_text, ...prices }: LinePrices): Price {
  const text = {
    ...(input_text !== undefined && { inputText: input_text }),
    ...(output_text !== undefined && { outputText: output_text }),
  };
  return { ...modelPrice(id, prices, text), source: 'catalogue' };
}

/** The public key of the releases, raw, in base64. Its private key is kept where releases are made (CONTRIBUTING.md). */
const MODELS_KEY = 'ofPMV4rCeazYLdxKXpMT2GrE6Hthi/VhbdOVJRmMHJI=';

/** The DER prefix of a 32-byte Ed25519 public key (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

export const rawPublicKey = (key: KeyObject): string =>
  key.export({ type: 'spki', format: 'der' }).subarray(SPKI.length).toString('base64');

const LAST_LINE = /\n\{"signature":"([A-Za-z0-9+/]{86}==)"\}\n?$/;

let trusted = MODELS_KEY;

/** For tests, which sign with a key of their own. */
export function trustModelsKey(key = MODELS_KEY): void {
  trusted = key;
}

/** The text without its signature; undefined: it has none, or another key's. */
export function verifiedText(signed: string): string | undefined {
  // The signature is within the last 200 characters, so only they are searched.
  const from = Math.max(0, signed.length - 200);
  const found = LAST_LINE.exec(signed.slice(from));
  if (found === null) return undefined;
  const text = signed.slice(0, from + found.index + 1);
  const publicKey = createPublicKey({
    key: Buffer.concat([SPKI, Buffer.from(trusted, 'base64')]),
    format: 'der',
    type: 'spki',
  });
  return verify(null, Buffer.from(text), publicKey, Buffer.from(found[1]!, 'base64'))
    ? text
    : undefined;
}
