/** Related forms of English words that have different stems: `allergic` and `allergy`, `children` and `child`. */

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
const SINGULARS = new Map(Object.entries(PLURALS).map(([many, one]) => [one, many]));
const ENGLISH = /^[a-z]{3,}$/;
/** Words that only look like a form of another word. */
const THEMSELVES: ReadonlySet<string> = new Set(['organism', 'fabric', 'arctic', 'attic']);

/**
 * The common root of a word's forms. The rules come from the steps of Porter's stemmer that {@link stem}
 * leaves out, as far as they keep different words apart: plurals in -xes, -ches, -shes and -oes; -ical
 * and -ic beside -y (`allergic`, `allergy`); -anism and -alism (`vegetarianism`).
 * @param term as the index holds it, a stem
 */
function rootOf(term: string): string {
  if (!ENGLISH.test(term) || THEMSELVES.has(term)) return term;
  const plural = Object.hasOwn(PLURALS, term) ? PLURALS[term]! : term;
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
  const many = SINGULARS.get(root);
  if (many !== undefined) made.push(many);
  const forms = new Set([term]);
  for (const form of made) if (rootOf(form) === root) forms.add(form);
  return [...forms];
}
