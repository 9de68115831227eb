/** The schema of a models file; unknown fields make the whole file invalid. */

import { isObject, tryParse } from '../../lib/json/json.ts';
import { isDay } from '../../lib/text/calendar.ts';
import { check } from '../file/check.ts';
import {
  closed,
  count,
  inProgram,
  integer,
  list,
  type Node,
  named,
  number,
  string,
  text,
} from '../file/schema.ts';
import { freeSearches, searchPer, tierTime } from '../sections/prices.ts';
import { profileFacts } from '../sections/profiles.ts';

const some = <N extends Node>(node: N) => node.optional('unknown');
const price = number('a price in USD', { minimum: 0, maximum: 1_000_000 });
const usd = some(price);

/** As `Rates` of `sections/prices.ts`. */
const RATES = {
  input: usd,
  output: usd,
  cached: usd,
  cache_write: usd,
  cache_write_1h: usd,
  reasoning: usd,
  search: usd,
  request: usd,
  minute: usd,
  character: usd,
  input_audio: usd,
  output_audio: usd,
  input_text: usd,
  output_text: usd,
};
const tier = closed('other prices for some requests', {
  above: some(count('prompt tokens above which it counts')),
  service_tier: some(text('the tier that was served')),
  time: some(tierTime),
  ...RATES,
});
const factor = number('a factor', { minimum: 0, maximum: 1000 });

const LINES: Readonly<Record<string, Node>> = {
  rule: closed('a rule', {
    rule: text('a glob of model names'),
    for: text('names of profiles'),
    facts: closed('facts of a profile', profileFacts),
  }),
  vendor: closed('a vendor', { vendor: text('the vendor of the models that follow') }),
  id: closed('a model', {
    id: text('the name of a model'),
    name: some(text('its name for people')),
    context: some(count('tokens of the window', 1)),
    output: some(count('tokens of an answer', 1)),
    can: some(string('abilities: t tools, r reasoning', { pattern: '^t?r?$' })),
    cannot: some(string('abilities that it lacks', { pattern: '^t?r?$' })),
    in: some(text('kinds of input')),
    cache: some(count('the least prompt tokens that are cached', 1)),
    usd: some(
      closed('prices', {
        ...RATES,
        input: price,
        output: price,
        tiers: some(list(tier)),
        regions: some(named(factor, 'factors by region')),
        search_per: some(searchPer),
        free_searches: some(freeSearches),
      }),
    ),
    ends: some(text('the day on which it ends')),
    next: some(text('its successor')),
  }),
};
const HEAD = closed('the first line', {
  format: integer('the form of the file', 1, 1),
  date: text('the day of its data'),
  sources: some(list(string())),
});

const MAX_LINES = 50_000;

/** Why the text is no file of models, with the number of the line; undefined: it is one. */
export function problemOfModels(written: string): string | undefined {
  const lines = written.split('\n');
  if (lines.pop() !== '') return 'its last line is not whole';
  if (lines.length > MAX_LINES) return `it has more than ${MAX_LINES} lines`;
  let after = 'head';
  for (const [index, line] of lines.entries()) {
    const at = `line ${index + 1}`;
    const value = tryParse(line);
    if (!isObject(value)) return `${at} is no JSON object`;
    const kind = index === 0 ? 'head' : Object.keys(LINES).find((key) => value[key] !== undefined);
    if (kind === undefined) return `${at} is neither a rule nor a vendor nor a model`;
    // Lines are found by how they begin.
    if (index > 0 && !line.startsWith(`{"${kind}":`)) return `${at}: "${kind}" must come first`;
    if (kind === 'rule' && after !== 'head' && after !== 'rule') return `${at}: rules come first`;
    if (kind === 'id' && after !== 'vendor' && after !== 'id')
      return `${at}: a model without vendor`;
    const node = kind === 'head' ? HEAD : LINES[kind]!;
    const { problems } = check(node, value, new Set());
    // The schema accepts any text as a time or a time zone.
    const findings = { problems: [...problems], warnings: [] };
    if (problems.length === 0) inProgram(node, value, { findings });
    const [problem] = findings.problems;
    if (problem !== undefined)
      return `${at}: ${[...problem.path, ''].join('.').slice(0, -1)} ${problem.message}`.replace(
        /: +/,
        ': ',
      );
    for (const day of [value.date, value.ends]) {
      if (day !== undefined && !isDay(String(day)))
        return `${at}: "${day}" is no day of the calendar`;
    }
    after = kind;
  }
  return after === 'head' ? 'it has no model' : undefined;
}
