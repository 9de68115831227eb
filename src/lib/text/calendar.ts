/** Days of the calendar, and time zones. */

const SECOND = 1000;
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    formats.set(timeZone, format);
  }
  return format;
}

/** The local time of the zone, encoded as if it were UTC. */
export function localTime(timeZone: string, instant: number): number {
  // The format has whole seconds, and rounds down before 1970 too.
  const whole = Math.floor(instant / SECOND) * SECOND;
  const fields: Record<string, number> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(whole)) {
    fields[type] = Number(value);
  }
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = fields;
  return Date.UTC(year, month - 1, day, hour, minute, second) + (instant - whole);
}

/** Whether the system knows a time zone by this name. */
export function isTimeZone(name: string): boolean {
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

/** Whether `2027-02-28` is a day: a 31st of February is none. The text must have this form. */
export function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}
