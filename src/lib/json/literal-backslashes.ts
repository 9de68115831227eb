/** Backslashes that a model forgot to escape: doubled where it is certain that they stand for themselves. */

const ESCAPE = /^(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/;
const MAX_ESCAPE = 5;
/** A drive, a backslash that is not doubled, and nothing that a path cannot hold. */
const WHOLE_PATH = /^[A-Za-z]:\\(?!\\)[^"*?<>|/\p{Cc}]*$/u;
const PATH_INSIDE = /(?<![A-Za-z0-9])[A-Za-z]:\\(?!\\)/;

/**
 * The text with every backslash doubled that begins no JSON escape. In a string with such backslashes the valid
 * ones are suspect, too: a Windows path holds no control characters, and models do not write a backspace or a form
 * feed. Undefined: the meaning is not certain.
 */
export function withLiteralBackslashes(text: string): string | undefined {
  if (!text.includes('\\') || /^\{\s*\\/.test(text)) return text;
  let out = '';
  let done = 0;
  let quote = '';
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (char === '\\') {
      i++;
    } else if (quote === '' && (char === '"' || char === "'")) {
      quote = char;
      from = i + 1;
    } else if (char === quote) {
      const fixed = literal(text.slice(from, i), quote);
      if (fixed === undefined) return undefined;
      out += text.slice(done, from) + fixed;
      done = i;
      quote = '';
    }
  }
  return out + text.slice(done);
}

function literal(content: string, quote: string): string | undefined {
  const found = backslashes(content, quote);
  if (!found.some(({ valid }) => !valid)) return content;
  const path = WHOLE_PATH.test(content);
  const inside = !path && PATH_INSIDE.test(content);
  let out = '';
  let done = 0;
  for (const { at, valid } of found) {
    const letter = content[at + 1] ?? '';
    const control = valid && 'nrtu'.includes(letter);
    // A drive's path in the middle of a text may be followed by a line break.
    if (control && (inside || (path && letter === 'u'))) return undefined;
    const literal = !valid || letter === 'b' || letter === 'f' || (path && control);
    if (!literal) continue;
    out += `${content.slice(done, at)}\\`;
    done = at;
  }
  return out + content.slice(done);
}

interface Backslash {
  readonly at: number;
  /** It begins an escape of JSON, or one of the quote. */
  readonly valid: boolean;
}

function backslashes(content: string, quote: string): readonly Backslash[] {
  const found: Backslash[] = [];
  for (let at = content.indexOf('\\'); at >= 0; ) {
    const next = content.slice(at + 1, at + 1 + MAX_ESCAPE);
    const valid = ESCAPE.test(next) || (quote === "'" && next.startsWith("'"));
    found.push({ at, valid });
    at = content.indexOf('\\', at + (valid ? 2 : 1));
  }
  return found;
}
