/** The reader's choices, kept in this browser, and the texts of the page in their language: English as in the source, or the Chinese of chinese.json. */

import chinese from '../chinese.json' with { type: 'json' };

const PREFIX = 'hopgate-';

/** The stored value; undefined where nothing is stored, or the browser keeps nothing. */
export function setting(name: string): string | undefined {
  try {
    return localStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keepSetting(name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // The choice holds until the page is loaded again.
  }
}

const LANGUAGES = ['en', 'zh-CN'] as const;
type Language = (typeof LANGUAGES)[number];

/** The language of the switch, else the first of the browser's languages that the page speaks. */
function chosen(): Language {
  const kept = LANGUAGES.find((one) => one === setting('language'));
  const wanted = (globalThis.navigator?.languages ?? []).map((one) => one.slice(0, 2));
  return kept ?? LANGUAGES.find((one) => one.startsWith(wanted.find(isKnown) ?? 'en')) ?? 'en';
}

const isKnown = (name: string) => LANGUAGES.some((one) => one.startsWith(name));

/** The same until the page is loaded again. */
export const LANGUAGE = chosen();

const TEXTS: Readonly<Record<string, string>> = LANGUAGE === 'en' ? {} : chinese.page;
const SENTENCES: readonly (readonly [string, string])[] =
  LANGUAGE === 'en' ? [] : Object.entries(chinese.gateway);

/** A text in the reader's language, cut where its values stand: words, number of a value, words, … */
function cut(parts: readonly string[]): readonly string[] {
  const text = parts.map((part, i) => (i === 0 ? part : `{${i}}${part}`)).join('');
  const english = text.trim();
  const its = TEXTS[english.replace(/\s+/g, ' ')] ?? english;
  // In Chinese nothing stands between a word and the comma behind it.
  return text
    .replace(english, () => its)
    .replaceAll(' ，', '，')
    .split(/\{(\d)\}/);
}

/** Texts that were cut before: a list draws the same ones for every row. */
const known = new WeakMap<readonly string[], readonly string[]>();

/** The words of a text and the values between them, in the order of the reader's language. */
function filled<Value>(parts: readonly string[], values: readonly Value[]): (string | Value)[] {
  const pieces = known.get(parts) ?? cut(parts);
  known.set(parts, pieces);
  return pieces.map((piece, i) => (i % 2 === 0 ? piece : values[Number(piece) - 1]!));
}

/** A text of the page; `{1}` and so on stand for its values in chinese.json. */
export const t = (parts: TemplateStringsArray, ...values: readonly (string | number)[]): string =>
  filled(parts, values).join('');

/** The same with elements among the words. */
export const rich = <Value>(parts: TemplateStringsArray, ...values: readonly Value[]) =>
  filled(parts, values);

/** `1 hop`, `3 hops`; Chinese has the text of the plural. @param amount as it is shown */
export function counted(value: number, amount: string, one: string, many: string): string {
  const word = LANGUAGE === 'en' && value === 1 ? one : many;
  return filled(['', ` ${word}`], [amount]).join('');
}

/** Between the parts of an enumeration. */
const COMMA = LANGUAGE === 'en' ? ', ' : '，';

/** Parts with commas between them; what is false or empty is left out. */
export const listed = (parts: readonly (string | false | null | undefined)[]): string =>
  parts.filter((part) => part).join(COMMA);

/** The address of a page of the manual in the reader's language. @param page '' for the first one; with its anchor */
export function manual(page: string): string {
  if (LANGUAGE === 'en') return page === '' ? '/docs' : `/docs/${page}`;
  return page === '' ? '/docs/zh-CN' : `/docs/${page.replace(/(?=#|$)/, '.zh-CN')}`;
}

/** A sentence that the gateway made, such as why a cache was lost; one that is not known stays English. */
export function said(sentence: string): string {
  for (const [english, text] of SENTENCES) {
    const values = valuesIn(sentence, english.split(/\{\d\}/));
    if (values !== undefined) {
      return text.replace(/\{(\d)\}/g, (_, number) => said(values[Number(number) - 1]!));
    }
  }
  return sentence;
}

/** The texts between the parts of a pattern; undefined where the pattern does not fit. */
function valuesIn(text: string, parts: readonly string[]): readonly string[] | undefined {
  const values: string[] = [];
  if (!text.startsWith(parts[0]!)) return undefined;
  let from = parts[0]!.length;
  for (const [i, part] of parts.slice(1).entries()) {
    const isLast = i === parts.length - 2;
    const at = isLast ? text.length - part.length : text.indexOf(part, from);
    if (at < from || !text.startsWith(part, at)) return undefined;
    values.push(text.slice(from, at));
    from = at + part.length;
  }
  return from === text.length ? values : undefined;
}
