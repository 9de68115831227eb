/** Days, months and years that a question names, in English and Chinese, also as seen from today. */

/** Milliseconds since 1970, the end exclusive. */
export interface TimeRange {
  readonly since: number;
  readonly until: number;
}

export interface NamedTimes {
  readonly ranges: readonly TimeRange[];
  /** The question without the words that name them. */
  readonly rest: string;
}

const DAY = 86_400_000;
const MONTHS =
  'jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?';
const MONTH_NAMES = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const WEEKDAYS = 'sunday|monday|tuesday|wednesday|thursday|friday|saturday';
const COUNTS = 'a|an|one|two|three|four|five|six|seven|\\d{1,2}';
const CHINESE_DIGITS = '〇一二三四五六七八九';

/** A day of a calendar; `day` or `month` left out: the whole month or year. Without a year: any. */
interface CalendarPart {
  readonly year?: number | undefined;
  readonly month?: number | undefined;
  readonly day?: number | undefined;
}

interface Pattern {
  readonly finds: RegExp;
  /** The period that the groups of a match name. */
  readonly reads: (
    found: readonly (string | undefined)[],
    today: Calendar,
  ) => CalendarPart | DayRange | undefined;
}

/** Days relative to today: from the first to before the last. */
interface DayRange {
  readonly from: number;
  readonly to: number;
}

interface Calendar {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  /** 0: Sunday. */
  readonly weekday: number;
}

const numberOf = (said: string): number => {
  const word = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven'].indexOf(said);
  return /^an?$/.test(said) ? 1 : word >= 0 ? word : Number(said);
};
const monthOf = (name: string): number => MONTH_NAMES.indexOf(name.slice(0, 3).toLowerCase()) + 1;
const weekdayOf = (name: string): number => WEEKDAYS.split('|').indexOf(name.toLowerCase());
/** `5`, `五`, `十`, `十二`, `二十三`. */
function chineseNumber(said: string): number {
  if (/^\d+$/.test(said)) return Number(said);
  const [tens, ones] = said.includes('十') ? said.split('十') : ['', said];
  const digit = (one: string | undefined, none: number) =>
    one === undefined || one === '' ? none : CHINESE_DIGITS.indexOf(one);
  return said.includes('十') ? digit(tens, 1) * 10 + digit(ones, 0) : digit(ones, 0);
}
const optional = (said: string | undefined, read: (said: string) => number = Number) =>
  said === undefined ? undefined : read(said);
const ago = (days: number, length = 1): DayRange => ({ from: -days, to: -days + length });
const sinceMonday = ({ weekday }: Calendar): number => (weekday + 6) % 7;
const weekBefore = (today: Calendar, weeks: number): DayRange => {
  const from = -sinceMonday(today) - 7 * weeks;
  return { from, to: from + 7 };
};
const monthBefore = ({ year, month }: Calendar, months: number): CalendarPart => {
  const at = year * 12 + month - 1 - months;
  return { year: Math.floor(at / 12), month: (at % 12) + 1 };
};
/** The last such day, not today. */
const lastWeekday = ({ weekday }: Calendar, wanted: number): DayRange =>
  ago((weekday - wanted + 7) % 7 || 7);

const NUMBER = '[〇一二三四五六七八九十\\d]{1,3}';
const PATTERNS: readonly Pattern[] = [
  {
    finds: /\b(\d{4})-(\d{1,2})-(\d{1,2})\b/g,
    reads: ([year, month, day]) => ({ year: Number(year), month: Number(month), day: Number(day) }),
  },
  {
    finds: new RegExp(
      `(?:(\\d{4})\\s?年)?\\s?(${NUMBER})\\s?月份?\\s?(?:(${NUMBER})\\s?[日号號])?`,
      'g',
    ),
    reads: ([year, month, day]) => ({
      year: optional(year),
      month: chineseNumber(month!),
      day: optional(day, chineseNumber),
    }),
  },
  {
    finds: new RegExp(
      `\\b(\\d{1,2})(?:st|nd|rd|th)?(?: of)? (${MONTHS})\\b\\.?(?:,? (\\d{4}))?`,
      'gi',
    ),
    reads: ([day, month, year]) => ({
      day: Number(day),
      month: monthOf(month!),
      year: optional(year),
    }),
  },
  {
    finds: new RegExp(`\\b(${MONTHS})\\.? (\\d{1,2})(?:st|nd|rd|th)?\\b(?:,? (\\d{4}))?`, 'gi'),
    reads: ([month, day, year]) => ({
      month: monthOf(month!),
      day: Number(day),
      year: optional(year),
    }),
  },
  {
    finds: new RegExp(
      `\\b(?:in|of|during|since|until|by|last|this|early|late|mid) (${MONTHS})\\b(?:,? (\\d{4}))?`,
      'gi',
    ),
    reads: ([month, year]) => ({ month: monthOf(month!), year: optional(year) }),
  },
  {
    finds: new RegExp(`\\b(${MONTHS}),? (\\d{4})\\b`, 'gi'),
    reads: ([month, year]) => ({ month: monthOf(month!), year: Number(year) }),
  },
  {
    finds: /\btoday\b|\bthis (?:morning|afternoon|evening)\b|今天|今日|今早|今晚/gi,
    reads: () => ago(0),
  },
  { finds: /\byesterday\b|\blast night\b|昨天|昨日|昨晚/gi, reads: () => ago(1) },
  { finds: /\bthe day before yesterday\b|前天/gi, reads: () => ago(2) },
  {
    finds: new RegExp(`\\b(${COUNTS}) (day|week|month)s? ago\\b`, 'gi'),
    reads: ([count, unit], today) => {
      const many = numberOf(count!.toLowerCase());
      if (unit === 'day') return ago(many);
      return unit === 'week' ? weekBefore(today, many) : monthBefore(today, many);
    },
  },
  {
    finds: new RegExp(`(${NUMBER})\\s?(天|周|个星期|個星期|个礼拜|个月|個月)[之以]?前`, 'g'),
    reads: ([count, unit], today) => {
      const many = chineseNumber(count!);
      if (unit === '天') return ago(many);
      return unit!.endsWith('月') ? monthBefore(today, many) : weekBefore(today, many);
    },
  },
  {
    finds: /\b(last|this|past) week(end)?\b/gi,
    reads: ([which, end], today) => {
      const week = weekBefore(today, which!.toLowerCase() === 'this' ? 0 : 1);
      return end === undefined ? week : { from: week.from + 5, to: week.to };
    },
  },
  {
    finds: /上个?(?:周|星期|礼拜|週)末/g,
    reads: (_, today) => ({ from: weekBefore(today, 1).from + 5, to: weekBefore(today, 1).to }),
  },
  {
    finds: /(上|这|本)个?(?:周|星期|礼拜|週)([一二三四五六日天])?/g,
    reads: ([which, day], today) => {
      const week = weekBefore(today, which === '上' ? 1 : 0);
      if (day === undefined) return week;
      const from = week.from + (('一二三四五六'.indexOf(day) + 7) % 7);
      return { from, to: from + 1 };
    },
  },
  {
    finds: /\b(last|this|past) month\b/gi,
    reads: ([which], today) => monthBefore(today, which!.toLowerCase() === 'this' ? 0 : 1),
  },
  {
    finds: /(上|这|本)个?月/g,
    reads: ([which], today) => monthBefore(today, which === '上' ? 1 : 0),
  },
  {
    finds: new RegExp(`\\b(?:last|on) (${WEEKDAYS})\\b`, 'gi'),
    reads: ([day], today) => lastWeekday(today, weekdayOf(day!)),
  },
  { finds: /\b(?:last year)\b|去年/gi, reads: (_, { year }) => ({ year: year - 1 }) },
  { finds: /前年/g, reads: (_, { year }) => ({ year: year - 2 }) },
  { finds: /\bin (\d{4})\b/gi, reads: ([year]) => ({ year: Number(year) }) },
  { finds: /(\d{4})\s?年/g, reads: ([year]) => ({ year: Number(year) }) },
];
/** Most questions name no time. */
const ANY =
  /\d|[年月日号周天昨前去星礼]|day|week|month|year|night|morning|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec/i;
/** Years before the question that a date without a year may mean. */
const YEARS_BACK = 3;
/** Times that one question names. */
const MAX_TIMES = 4;

/**
 * @param now milliseconds since 1970
 * @param ahead milliseconds that the clock of the one who asks is ahead of UTC
 */
export function namedTimes(query: string, now: number, ahead: number): NamedTimes {
  if (!ANY.test(query)) return { ranges: [], rest: query };
  const local = new Date(now + ahead);
  const today: Calendar = {
    year: local.getUTCFullYear(),
    month: local.getUTCMonth() + 1,
    day: local.getUTCDate(),
    weekday: local.getUTCDay(),
  };
  const ranges: TimeRange[] = [];
  let rest = query;
  for (const { finds, reads } of PATTERNS) {
    rest = rest.replace(finds, (whole: string, ...groups: readonly unknown[]) => {
      if (ranges.length >= MAX_TIMES * (YEARS_BACK + 1)) return whole;
      const part = reads(groups.slice(0, 3) as readonly (string | undefined)[], today);
      const found = part === undefined ? [] : rangesOf(part, today);
      if (found.length === 0) return whole;
      ranges.push(
        ...found.map(({ since, until }) => ({ since: since - ahead, until: until - ahead })),
      );
      return ' ';
    });
  }
  return { ranges, rest };
}

function rangesOf(part: CalendarPart | DayRange, today: Calendar): readonly TimeRange[] {
  if ('from' in part) {
    const start = Date.UTC(today.year, today.month - 1, today.day);
    return [{ since: start + part.from * DAY, until: start + part.to * DAY }];
  }
  const { year, month, day } = part;
  if (month !== undefined && !(month >= 1 && month <= 12)) return [];
  if (day !== undefined && !(day >= 1 && day <= 31)) return [];
  if (year !== undefined && !(year >= 1970 && year <= today.year + 1)) return [];
  const years =
    year !== undefined
      ? [year]
      : Array.from({ length: YEARS_BACK + 1 }, (_, back) => today.year - back);
  return years.map((one) => {
    if (month === undefined) return { since: Date.UTC(one, 0), until: Date.UTC(one + 1, 0) };
    if (day === undefined) return { since: Date.UTC(one, month - 1), until: Date.UTC(one, month) };
    const since = Date.UTC(one, month - 1, day);
    return { since, until: since + DAY };
  });
}
