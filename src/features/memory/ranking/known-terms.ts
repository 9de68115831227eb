/** Which terms of a question a space knows, in which forms, and how many of its events hold them. */

import { stem } from '../../../lib/text/stem.ts';
import { wordSet } from '../../../lib/text/words.ts';
import type { Question } from './question.ts';
import { isSingleCharacter } from './terms.ts';

/** Terms of a query that are looked up at most. */
const MAX_TERMS = 96;
/** Rows read for one query. The ranking weighs common terms that are not read here. 8000 find nothing more (decision 44). */
export const MAX_ROWS_READ = 2000;

export interface KnownTerms {
  /** The number of the space's events that contain each term. */
  readonly eventCounts: ReadonlyMap<string, number>;
  /** The forms of each term that the space contains. */
  readonly forms: ReadonlyMap<string, readonly string[]>;
}

/** The terms by which one of a question is found: its forms, and what may stand in its place. */
export const findingTerms = (term: string, forms: readonly string[] = []): readonly string[] => [
  ...new Set([...formsOf(term), ...synonymsOf(term), ...forms]),
];

/** Terms that are looked up, each with those by which it is found. */
export type LookedUp = ReadonlyMap<string, readonly string[]>;

export const lookedUpTerms = ({ terms, forms }: Pick<Question, 'terms' | 'forms'>): LookedUp =>
  new Map(mostTelling(terms).map((term) => [term, findingTerms(term, forms.get(term))]));

/** The terms of a long query that are looked up: words and pairs before single characters, the last ones first. */
function mostTelling(terms: readonly string[]): readonly string[] {
  if (terms.length <= MAX_TERMS) return terms;
  const late = terms.toReversed();
  const whole = late.filter((term) => !isSingleCharacter(term));
  return [...whole, ...late.filter(isSingleCharacter)].slice(0, MAX_TERMS);
}

/**
 * @param events of the space
 * @param countOf the number of its events that contain a form
 */
export function knownTerms(
  lookedUp: LookedUp,
  events: number,
  countOf: (form: string) => number,
): KnownTerms {
  const eventCounts = new Map<string, number>();
  const forms = new Map<string, readonly string[]>();
  for (const [term, finding] of lookedUp) {
    const held = finding.flatMap((form) => {
      const having = countOf(form);
      return having > 0 ? [{ form, having }] : [];
    });
    const sum = held.reduce((all, one) => all + one.having, 0);
    eventCounts.set(term, Math.min(sum, events));
    forms.set(
      term,
      held.map(({ form }) => form),
    );
  }
  return { eventCounts, forms };
}

/** Chinese words of everyday life that stand for each other: a question uses one and its answer another. */
// Measured on labelled sets (decision 44). Words of one or two characters: the index has no longer ones.
const GROUPS = `工作 上班 职业 職業|老家 家乡 家鄉 故乡 故鄉|学历 毕业 教育 學歷 畢業|毕业 念到 读到 学校 畢業 唸到 讀到 學校
爱好 喜欢 兴趣 愛好 喜歡 興趣|手机 电话 号码 手機 電話 號碼|邮箱 邮件 郵箱 郵件|身高 个子 個子 多高|年龄 岁数 年纪 年齡 歲數 年紀
公司 单位 單位|职位 职务 岗位 職位 職務 崗位|生日 出生|妈妈 母亲 媽媽 母親|爸爸 父亲 父親|老婆 妻子 太太|老公 丈夫|孩子 小孩
地点 地方 位置 地點|路过 经过 路過 經過|上司 领导 老板 領導 老闆|名字 姓名|牌子 品牌`;

const SYNONYMS = new Map<string, readonly string[]>();
for (const group of GROUPS.split(/[|\n]/)) {
  const words = group.split(' ');
  for (const word of words) SYNONYMS.set(word, [...(SYNONYMS.get(word) ?? []), ...words]);
}

/** Terms that may stand in the place of one; it is among them itself where there are any. For finding, never for forgetting. */
const synonymsOf = (term: string): readonly string[] => SYNONYMS.get(term) ?? [];

// Irregular plurals, without those that are also another word (lives, leaves).
const PLURALS: ReadonlyMap<string, string> = new Map(
  `children child|men man|women woman|people person|feet foot|teeth tooth|geese goose|mice mouse
wive wife|knive knife|wolve wolf|shelve shelf|loave loaf|thieve thief|halve half`
    .split(/[|\n]/)
    .map((pair) => pair.split(' ') as [many: string, one: string]),
);
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
const SINGULARS = new Map([...PLURALS].map(([many, one]) => [one, many]));
const ENGLISH = /^[a-z]{3,}$/;
/** Words that only look like a form of another word. */
const THEMSELVES = wordSet('organism fabric arctic attic currenci');

/**
 * The common root of a word's forms. The rules come from the steps of Porter's stemmer that {@link stem}
 * leaves out, as far as they keep different words apart: plurals in -xes, -ches, -shes and -oes; -ical
 * and -ic beside -y (`allergic`, `allergy`); -anism and -alism (`vegetarianism`); -ancy and -ency beside -ant and
 * -ent (`pregnancy`, `pregnant`).
 * @param term as the index holds it, a stem
 */
function rootOf(term: string): string {
  if (!ENGLISH.test(term) || THEMSELVES.has(term)) return term;
  const plural = PLURALS.get(term) ?? term;
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
