/** Calendar periods: days of 23, 24 and 25 hours, midnights that do not exist or come twice, weeks and months. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { isTimeZone } from '../../src/lib/text/calendar.ts';
import { boundsAt } from '../../src/limits/calendar.ts';

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'America/Havana',
  'America/Asuncion',
  'Pacific/Apia',
  'America/St_Johns',
  'Africa/Cairo',
  'Asia/Beirut',
  'Pacific/Kiritimati',
];
const HOUR = 3_600_000;

const dates = new Map<string, Intl.DateTimeFormat>();

function dateOf(zone: string, instant: number): string {
  let format = dates.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' });
    dates.set(zone, format);
  }
  return format.format(instant);
}
const at = (text: string) => Date.parse(text);
const shown = ({ start, end }: { start: number; end: number }) =>
  `${new Date(start).toISOString()} ${new Date(end).toISOString()}`;

describe('calendar periods', () => {
  test('days of 23, 24 and 25 hours', () => {
    const berlin = (text: string) => shown(boundsAt(at(text), 'day', 'Europe/Berlin'));
    expect(berlin('2026-03-29T12:00:00Z')).toBe(
      '2026-03-28T23:00:00.000Z 2026-03-29T22:00:00.000Z',
    );
    expect(berlin('2026-06-01T12:00:00Z')).toBe(
      '2026-05-31T22:00:00.000Z 2026-06-01T22:00:00.000Z',
    );
    expect(berlin('2026-10-25T12:00:00Z')).toBe(
      '2026-10-24T22:00:00.000Z 2026-10-25T23:00:00.000Z',
    );
  });

  test('a midnight that does not exist, one that comes twice, and a day that was left out', () => {
    // Beirut goes from 24:00 to 01:00, Havana from 01:00 back to 00:00; Apia had no 30 December 2011.
    expect(shown(boundsAt(at('2024-03-31T06:00:00Z'), 'day', 'Asia/Beirut'))).toBe(
      '2024-03-30T22:00:00.000Z 2024-03-31T21:00:00.000Z',
    );
    expect(shown(boundsAt(at('2024-11-03T12:00:00Z'), 'day', 'America/Havana'))).toBe(
      '2024-11-03T04:00:00.000Z 2024-11-04T05:00:00.000Z',
    );
    const before = boundsAt(at('2011-12-30T09:00:00Z'), 'day', 'Pacific/Apia');
    const after = boundsAt(before.end, 'day', 'Pacific/Apia');
    expect([before, after].map(({ start }) => dateOf('Pacific/Apia', start))).toEqual([
      '2011-12-29',
      '2011-12-31',
    ]);
  });

  test('clocks that go back over midnight: the day has begun, and stays so', () => {
    // St John's went from 00:01 back to 23:01 of the day before.
    const day = boundsAt(at('2010-11-07T02:30:30Z'), 'day', 'America/St_Johns');
    const again = boundsAt(at('2010-11-07T03:00:00Z'), 'day', 'America/St_Johns');
    expect(shown(again)).toBe(shown(day));
    expect(dateOf('America/St_Johns', day.start)).toBe('2010-11-07');
  });

  test('weeks begin on Monday, months on the first', () => {
    expect(shown(boundsAt(at('2026-11-22T12:00:00Z'), 'week', 'UTC'))).toBe(
      '2026-11-16T00:00:00.000Z 2026-11-23T00:00:00.000Z',
    );
    expect(shown(boundsAt(at('2026-12-31T23:30:00Z'), 'month', 'Europe/Berlin'))).toBe(
      '2026-12-31T23:00:00.000Z 2027-01-31T23:00:00.000Z',
    );
  });

  test('hours follow the half hours of a zone; total has one period', () => {
    expect(shown(boundsAt(at('2026-05-01T10:40:00Z'), 'hour', 'Asia/Kolkata'))).toBe(
      '2026-05-01T10:30:00.000Z 2026-05-01T11:30:00.000Z',
    );
    expect(boundsAt(at('2026-05-01T10:40:00Z'), 'total', 'UTC')).toEqual({
      start: 0,
      end: Number.MAX_SAFE_INTEGER,
    });
  });

  const instant = fc.integer({ min: at('2008-01-01T00:00:00Z'), max: at('2037-01-01T00:00:00Z') });

  test('periods follow each other without a gap, and each instant has one', () => {
    fc.assert(
      fc.property(
        instant,
        fc.constantFrom(...ZONES),
        fc.constantFrom('day', 'week', 'month'),
        (time, zone, per) => {
          const bounds = boundsAt(time, per, zone);
          expect(bounds.start).toBeLessThanOrEqual(time);
          expect(bounds.end).toBeGreaterThan(time);
          expect(shown(boundsAt(bounds.start, per, zone))).toBe(shown(bounds));
          expect(shown(boundsAt(bounds.end - 1, per, zone))).toBe(shown(bounds));
          expect(boundsAt(bounds.end, per, zone).start).toBe(bounds.end);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('a day is what the calendar shows, minute by minute around every change of the clocks', () => {
    for (const zone of ZONES) {
      const format = new Intl.DateTimeFormat('en-US', {
        timeZone: zone,
        timeZoneName: 'longOffset',
      });
      const offset = (time: number) =>
        format.formatToParts(time).find(({ type }) => type === 'timeZoneName')!.value;
      let changes = 0;
      for (
        let day = at('2024-01-01T00:00:00Z');
        day < at('2025-01-01T00:00:00Z');
        day += 24 * HOUR
      ) {
        if (offset(day) === offset(day + 24 * HOUR)) continue;
        changes++;
        for (let time = day - 24 * HOUR; time < day + 48 * HOUR; time += 15 * 60_000) {
          const { start, end } = boundsAt(time, 'day', zone);
          expect([zone, dateOf(zone, start)]).toEqual([zone, dateOf(zone, time)]);
          expect(dateOf(zone, start - 1)).not.toBe(dateOf(zone, time));
          expect(dateOf(zone, end)).not.toBe(dateOf(zone, time));
        }
      }
      if (zone === 'Europe/Berlin') expect(changes).toBe(2);
    }
  });

  test('a name that is no time zone', () => {
    expect(isTimeZone('Europe/Berlin')).toBe(true);
    expect(isTimeZone('Europe/Atlantis')).toBe(false);
  });
});
