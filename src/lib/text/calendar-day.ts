/** Days of the calendar as text. */

/** Whether `2027-02-28` is a day: a 31st of February is none. The text must have this form. */
export function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}
