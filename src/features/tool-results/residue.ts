/** Finds what is left of executed-tool records in a model's own text, whole or broken off. */

import { ENVELOPE_MARK } from './envelope.ts';

/** Keys with which such a record, or what is left of its end, can be told. */
const TAIL = /"(executed|result|stdout|exit_code|success)\\?"\s*:/g;

/**
 * The text without records and pieces of them; the same string when it holds none. Prose that only
 * names the format stays.
 */
export function withoutResidue(text: string): string {
  if (!text.includes(ENVELOPE_MARK) && !text.includes('"executed')) return text;
  let rest = text;
  for (let from = 0; ; ) {
    const mark = rest.indexOf(ENVELOPE_MARK, from);
    if (mark < 0) break;
    const start = objectStart(rest, mark);
    if (start < 0) {
      from = mark + ENVELOPE_MARK.length;
      continue;
    }
    const end = objectEnd(rest, start);
    rest = join(rest.slice(0, start), end < 0 ? '' : rest.slice(end));
    from = 0;
  }
  return withoutTail(rest);
}

/** Both sides of a hole, without the code fence that held nothing else. */
function join(before: string, after: string): string {
  const open = /(^|\n)[ \t]*(```|~~~)[a-zA-Z]*[ \t]*\n?\s*$/.exec(before);
  if (open !== null) {
    const close = /^\s*(```|~~~)[ \t]*(\n|$)/.exec(after);
    if (close !== null || after.trim() === '') {
      const kept = before.slice(0, open.index + open[1]!.length);
      return join(kept, close === null ? '' : after.slice(close[0].length));
    }
  }
  const left = before.trimEnd();
  const right = after.trimStart();
  if (left === '' || right === '') return left + right;
  return `${left}${before.includes('\n', left.length) || /^\s*\n/.test(after) ? '\n' : ' '}${right}`;
}

/** The end of a record whose beginning was lost: everything up to the brace that closes nothing. */
function withoutTail(text: string): string {
  const first = text.search(/"(tool|arguments|executed|result|meta)\\?"\s*:/);
  if (first < 0 || first > 200) return text;
  // Broken off inside a string, its quotes do not come in pairs.
  const quotes = text.match(/(?<!\\)"/g)?.length ?? 0;
  const end = unmatchedClose(text, quotes % 2 === 1);
  if (end >= 0) {
    const keys = new Set([...text.slice(0, end).matchAll(TAIL)].map(([, key]) => key));
    if (keys.has('result') && keys.size >= 3) return text.slice(end).replace(/^[}\]\s]+/, '');
  }
  return text;
}

/** The index of the first brace that closes nothing, -1 where there is none. */
function unmatchedClose(text: string, inString: boolean): number {
  const step = scanner(text, 0, inString);
  let depth = 0;
  for (let at = 0; at < text.length; at = step.next(at)) {
    if (step.inString) continue;
    if (text[at] === '{') depth++;
    else if (text[at] === '}' && --depth < 0) return at;
  }
  return -1;
}

/** Where the object begins that has the mark at its own level: the nearest brace that is still open there. */
function objectStart(text: string, mark: number): number {
  for (let at = text.lastIndexOf('{', mark); at >= 0; at = text.lastIndexOf('{', at - 1)) {
    const step = scanner(text, at);
    let depth = 0;
    let end = at;
    for (; end < mark; end = step.next(end)) {
      if (step.inString) continue;
      if (text[end] === '{') depth++;
      else if (text[end] === '}' && --depth === 0) break;
    }
    // In the middle of a string value, one level deep: `"version":"rcc.tool.v1"`.
    if (
      end >= mark &&
      depth === 1 &&
      step.inString &&
      /"version\\?"\s*:\s*\\?"$/.test(text.slice(at, mark))
    ) {
      return at;
    }
    if (at === 0) break;
  }
  return -1;
}

/** The index behind the brace that closes the object, -1 where it is broken off. */
export function objectEnd(text: string, start: number): number {
  const step = scanner(text, start);
  let depth = 0;
  for (let at = start; at < text.length; at = step.next(at)) {
    if (step.inString) continue;
    if (text[at] === '{') depth++;
    else if (text[at] === '}' && --depth === 0) return at + 1;
  }
  return -1;
}

/**
 * Walks JSON text and knows when it is inside a string. A record that was written into a JSON string
 * once more has its quotes escaped, `{\"version\":…`: there a quote is a backslash and a quote.
 */
function scanner(text: string, start: number, startsInString = false) {
  const escaped = /^\{?\s*\\"/.test(text.slice(start, start + 20));
  let inString = startsInString;
  return {
    get inString() {
      return inString;
    },
    /** The next index to look at; strings are entered and left on the way. */
    next(at: number): number {
      const char = text[at];
      if (escaped) {
        let slashes = 0;
        while (text[at + slashes] === '\\') slashes++;
        if (slashes > 0) {
          // One backslash is a quote of the record, three and more a quote inside its strings.
          if (text[at + slashes] === '"' && slashes === 1) inString = !inString;
          return at + slashes + (text[at + slashes] === '"' ? 1 : 0);
        }
        return at + 1;
      }
      if (char === '\\' && inString) return at + 2;
      if (char === '"') inString = !inString;
      return at + 1;
    },
  };
}
