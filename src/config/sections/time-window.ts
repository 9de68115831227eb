import { isTimeZone, localTime } from '../../lib/text/calendar.ts';
import { suggest } from '../../lib/text/did-you-mean.ts';
import { choice, closed, either, oneOrMore, type Reading, string, text } from '../file/schema.ts';

export interface TimeWindow {
  /** Minutes of the day; with `from > to` the window runs over midnight. */
  readonly from: number;
  readonly to: number;
  /** 0 = Sunday … 6; all when left out. A window over midnight belongs to the day on which it begins. */
  readonly days?: readonly number[];
  /** IANA name; the machine's own when left out. */
  readonly zone?: string;
}

const HOURS = '^\\s*\\d{1,2}:\\d{2}\\s*-\\s*\\d{1,2}:\\d{2}\\s*$';
const hours = string('Start and end, such as "22:00-06:00"; the end is excluded.', {
  pattern: HOURS,
});

const ALL_DAY = '00:00-24:00';
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;

/** @param zone the time zone that counts where none is written, for people */
export const timeWindow = (zone: string) =>
  either(
    [
      hours,
      closed('A window of time.', {
        hours: hours.byDefault(ALL_DAY),
        days: oneOrMore(choice(DAYS, 'A day.'), 'Days on which the window begins.').optional(
          'every day',
        ),
        zone: text('IANA time zone, such as "Europe/Berlin".').optional(zone),
      }),
    ],
    'A time of day such as "22:00-06:00", or a mapping with hours, days and zone.',
  ).reads(windowOf);

interface WrittenWindow {
  readonly hours?: string;
  readonly days?: readonly (typeof DAYS)[number][];
  readonly zone?: string;
}

function windowOf(
  written: string | WrittenWindow,
  { path, findings }: Reading,
): TimeWindow | undefined {
  const {
    hours = ALL_DAY,
    days,
    zone,
  }: WrittenWindow = typeof written === 'string' ? { hours: written } : written;
  const [from, to] = hours.split('-').map(minutes);
  if (from === undefined || to === undefined || from === to) {
    findings.problems.push({
      path: typeof written === 'string' ? path : [...path, 'hours'],
      message: 'is not a window of time such as "22:00-06:00"',
    });
    return undefined;
  }
  if (zone !== undefined && !isTimeZone(zone)) {
    findings.problems.push({
      path: [...path, 'zone'],
      message: 'is not a time zone',
      suggestion: suggest(zone, Intl.supportedValuesOf('timeZone')),
    });
    return undefined;
  }
  return { from, to, days: days?.map((day) => DAYS.indexOf(day)), zone };
}

function minutes(text: string): number | undefined {
  const [hour, minute] = text.trim().split(':').map(Number);
  if (hour === undefined || minute === undefined || minute > 59) return undefined;
  const total = hour * 60 + minute;
  return total <= 24 * 60 ? total : undefined;
}

/** A time in the week, to the minute. */
export interface WeekTime {
  /** 0 = Sunday … 6. */
  readonly day: number;
  /** Minutes since midnight. */
  readonly minute: number;
}

/** @param zone IANA name; undefined: the machine's own */
export function weekTime(time: number, zone = machineZone()): WeekTime {
  const local = new Date(localTime(zone, time));
  return { day: local.getUTCDay(), minute: local.getUTCHours() * 60 + local.getUTCMinutes() };
}

let ownZone: string | undefined;
function machineZone(): string {
  ownZone ??= new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return ownZone;
}

export function isWithin({ from, to, days }: TimeWindow, { day, minute }: WeekTime): boolean {
  const isOpen = (on: number) => days === undefined || days.includes(on);
  if (from < to) return isOpen(day) && minute >= from && minute < to;
  return (isOpen(day) && minute >= from) || (isOpen((day + 6) % 7) && minute < to);
}
