/** Related forms of English words that have different stems: `allergic` and `allergy`, `children` and `child`, `buy` and `bought`. */

import { stem } from '../../../lib/text/stem.ts';

// Irregular plurals, without those that are also another word (lives, leaves).
const PLURALS: Readonly<Record<string, string>> = {
  children: 'child',
  men: 'man',
  women: 'woman',
  people: 'person',
  feet: 'foot',
  teeth: 'tooth',
  geese: 'goose',
  mice: 'mouse',
  wive: 'wife',
  knive: 'knife',
  wolve: 'wolf',
  shelve: 'shelf',
  loave: 'loaf',
  thieve: 'thief',
  halve: 'half',
};
// Forms of irregular verbs, without those that are also another word (found, felt for the cloth, rose, lay).
const VERBS =
  `arise arose arisen|become became|begin began begun|bend bent|bleed bled|break broke broken|breed bred
bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|creep crept|deal dealt
dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed
fight fought|flee fled|fly flew flown|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
give gave given|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|know knew known
lead led|learn learnt|lend lent|lose lost|meet met|pay paid|prove proven|ride rode ridden|ring rang rung|run ran
see saw seen|seek sought|sell sold|send sent|shake shook shaken|shrink shrank shrunk|sing sang sung|sink sank sunk
sit sat|sleep slept|speak spoke spoken|spell spelt|spend spent|stand stood|steal stole stolen|stick stuck
strike struck|swear swore sworn|sweep swept|swim swam swum|take took taken|teach taught|tear tore torn|think thought
throw threw thrown|understand understood|wake woke woken|wear wore worn|weep wept|win won|write wrote written`
    .split(/[|\n]/)
    .map((forms) => forms.trim().split(' ').map(stem));
const VERB_FORMS = new Map(VERBS.flatMap((forms) => forms.map((form) => [form, forms] as const)));
const SINGULARS = new Map(Object.entries(PLURALS).map(([many, one]) => [one, many]));
const ENGLISH = /^[a-z]{3,}$/;
/** Words that only look like a form of another word. */
const THEMSELVES: ReadonlySet<string> = new Set([
  'organism',
  'fabric',
  'arctic',
  'attic',
  'currenci',
]);

/**
 * The common root of a word's forms. The rules come from the steps of Porter's stemmer that {@link stem}
 * leaves out, as far as they keep different words apart: plurals in -xes, -ches, -shes and -oes; -ical
 * and -ic beside -y (`allergic`, `allergy`); -anism and -alism (`vegetarianism`); -ancy and -ency beside -ant and
 * -ent (`pregnancy`, `pregnant`).
 * @param term as the index holds it, a stem
 */
function rootOf(term: string): string {
  if (!ENGLISH.test(term) || THEMSELVES.has(term)) return term;
  const plural = Object.hasOwn(PLURALS, term) ? PLURALS[term]! : term;
  if (/[ae]nci$/.test(plural) && plural.length > 6) return `${plural.slice(0, -2)}t`;
  if (/(?:x|ch|sh)e$/.test(plural)) return plural.slice(0, -1);
  if (plural.length > 5 && plural.endsWith('oe')) return plural.slice(0, -1);
  if (/(?:an|al)ism$/.test(plural) && plural.length > 7) return plural.slice(0, -3);
  const short = plural.length > 6 && plural.endsWith('ical') ? plural.slice(0, -2) : plural;
  return short.length > 5 && short.endsWith('ic') ? short.slice(0, -1) : short;
}

/** The term, and up to a few other terms under which the index may contain a form of the same word. */
export function formsOf(term: string): readonly string[] {
  if (!ENGLISH.test(term)) return [term];
  const root = rootOf(term);
  const made = [root, `${root}e`, `${root}ism`, `${root}c`, `${root}al`, `${root}cal`];
  if (/[ae]nt$/.test(root)) made.push(`${root.slice(0, -1)}ci`);
  const many = SINGULARS.get(root);
  if (many !== undefined) made.push(many);
  const forms = new Set([term, ...(VERB_FORMS.get(term) ?? [])]);
  for (const form of made) if (rootOf(form) === root) forms.add(form);
  return [...forms];
}
