/** Writes the file of models from its sources: `bun scripts/models.ts LITELLM.json MODELSDEV.json [--date YYYY-MM-DD]`. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { plainName, withoutVersion } from '../src/config/models/names.ts';
import { CATALOGUE_VENDORS } from '../src/vendors/index.ts';
import { ADDED_MODELS } from './models/additions.ts';
import { litellmVendors } from './models/litellm.ts';
import { modelsDevVendors } from './models/models-dev.ts';
import { MODEL_RULES } from './models/rules.ts';

const OUT = join(import.meta.dir, '../src/config/models/models.jsonl');

/** A line of the file. `src/config/models/model-schema.ts` has its members. */
export type Line = Readonly<Record<string, unknown>>;
/** Lines by vendor and id. */
export type Vendors = Readonly<Record<string, Readonly<Record<string, Line>>>>;

/** What either source has seen a model do, it can. */
function laidOver(known: Line | undefined, line: Line): Line {
  if (known === undefined) return line;
  const union = (key: string, by: string) => [
    ...new Set([known[key], line[key]].flatMap((one) => String(one ?? '').split(by))),
  ];
  const can = union('can', '').sort().reverse().join('');
  const { search } = (known.usd as Line | undefined) ?? {};
  return {
    ...known,
    ...line,
    ...(line.usd !== undefined && search !== undefined && { usd: { search, ...line.usd } }),
    can,
    // A flag that is left out is not known.
    cannot: String(known.cannot ?? '').replace(new RegExp(`[${can} ]`, 'g'), ''),
    in: union('in', ' ').join(' '),
  };
}

/** @param mostOf the source whose prices and limits count; `restOf` fills in what it does not say, and models it lacks */
function merged(mostOf: Vendors, restOf: Vendors): Map<string, Map<string, Line>> {
  const out = new Map<string, Map<string, Line>>();
  for (const vendor of CATALOGUE_VENDORS) {
    const models = new Map<string, Line>();
    for (const source of [restOf, mostOf]) {
      for (const [id, line] of Object.entries(source[vendor] ?? {})) {
        models.set(id, laidOver(models.get(id), line));
      }
    }
    for (const { vendor: own, id, from, facts } of ADDED_MODELS) {
      if (own !== vendor) continue;
      const base = models.get(id) ?? (from === undefined ? undefined : models.get(from));
      if (base === undefined) continue;
      models.set(id, { ...base, ...facts });
    }
    out.set(vendor, models);
  }
  return out;
}

/** Without a dated or regional name of which all is said under the shorter one already. */
function withoutRepeats(models: ReadonlyMap<string, Line>): readonly (readonly [string, Line])[] {
  const said = (id: string, line: Line) => {
    const short = withoutVersion(id);
    const { name: _, ...own } = line;
    const { name: __, ...shorter } = (short === id ? undefined : models.get(short)) ?? {};
    return short !== id && models.has(short) && Bun.deepEquals(own, shorter);
  };
  return [...models]
    .filter(([id, line]) => !said(id, line))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}

export interface Sources {
  readonly litellm: Readonly<Record<string, unknown>>;
  readonly modelsDev: Readonly<Record<string, unknown>>;
  readonly date?: string | undefined;
}

/**
 * The text of the file: its date and sources, the rules, then each vendor's name and its models. Vendors come in the
 * order of `CATALOGUE_VENDORS`; those not named there are left out.
 * @throws Error where no date is known, or no vendor
 */
export function modelsText({ litellm, modelsDev, date }: Sources): string {
  const stated = /\d{4}-\d{2}-\d{2}/.exec(String(litellm._source ?? ''))?.[0];
  const day = date ?? stated;
  if (day === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(day)) {
    throw new Error('the sources name no date: say --date YYYY-MM-DD');
  }
  const vendors = merged(litellmVendors(litellm), modelsDevVendors(modelsDev));
  const head = {
    format: 1,
    date: day,
    sources: [
      'https://github.com/BerriAI/litellm (MIT, Copyright (c) 2023 Berri AI)',
      'https://models.dev (MIT, Copyright (c) 2025 spin.dev)',
    ],
  };
  const lines: unknown[] = [head];
  for (const { profiles, glob, facts } of MODEL_RULES) {
    lines.push({ rule: glob, for: profiles.join(' '), facts });
  }
  let count = 0;
  for (const [vendor, models] of vendors) {
    if (models.size === 0) continue;
    lines.push({ vendor });
    for (const [id, line] of withoutRepeats(models)) {
      const { name } = line;
      const shown =
        name === undefined || plainName(String(name).replaceAll(' ', '-')) === plainName(id);
      const { can, cannot, in: kinds, ...rest } = line;
      lines.push({
        id,
        ...rest,
        ...(shown && { name: undefined }),
        ...(can !== '' && { can }),
        ...(cannot !== '' && { cannot }),
        ...(kinds !== 'text' && { in: kinds }),
      });
      count++;
    }
  }
  if (count === 0) throw new Error('the sources have none of the vendors');
  return `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { date: { type: 'string' } },
    allowPositionals: true,
  });
  const [litellm, modelsDev] = positionals.map((file) => JSON.parse(readFileSync(file, 'utf8')));
  if (litellm === undefined || modelsDev === undefined) {
    throw new Error('usage: bun scripts/models.ts LITELLM.json MODELSDEV.json [--date YYYY-MM-DD]');
  }
  writeFileSync(OUT, modelsText({ litellm, modelsDev, date: values.date }));
}
