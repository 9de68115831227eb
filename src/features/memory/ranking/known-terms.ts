/** Which terms of a question a space knows, in which forms, and how many of its events hold them. */

import type { Question } from './question.ts';
import { isSingleCharacter } from './terms.ts';
import { formsOf } from './word-forms.ts';

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
