/** Cuts a text to a number of characters, never through one. */

/** What a cut text ends with; it comes on top of the limit. */
export const CUT_MARK = '...(truncated)';

/**
 * The first `limit` characters (Unicode code points) with the mark behind them; the same text when it
 * is short enough, or was cut to that length before.
 */
export function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const body = text.endsWith(CUT_MARK) ? text.slice(0, -CUT_MARK.length) : text;
  if (body !== text && endOf(body, limit) === body.length) return text;
  const end = endOf(text, limit);
  return end === text.length ? text : text.slice(0, end) + CUT_MARK;
}

/** The index behind the first `limit` code points. */
function endOf(text: string, limit: number): number {
  if (text.length <= limit) return text.length;
  let at = 0;
  for (let left = limit; left > 0 && at < text.length; left--) {
    at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  }
  return at;
}
