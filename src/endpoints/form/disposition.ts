/** Reads parameters of MIME headers: the boundary of a form, the name and file name of its parts. */

/** Names in lower case. */
export type Parameters = ReadonlyMap<string, string>;

const isSpace = (char: string | undefined) => char === ' ' || char === '\t';

/**
 * The parameters behind the first word of a header (RFC 2045 §5.1, RFC 7578 §4.2); undefined where they cannot be
 * read, or where one stands twice: two readers could take different ones.
 */
export function readParameters(header: string): Parameters | undefined {
  const found = new Map<string, string>();
  let at = header.indexOf(';');
  while (at >= 0 && at < header.length) {
    at++;
    while (isSpace(header[at])) at++;
    if (at >= header.length) break;
    const equals = header.indexOf('=', at);
    if (equals < 0) return undefined;
    const name = header.slice(at, equals).toLowerCase();
    if (!/^[a-z0-9*_-]{1,40}$/.test(name) || found.has(name)) return undefined;
    const value =
      header[equals + 1] === '"' ? quoted(header, equals + 2) : token(header, equals + 1);
    if (value === undefined) return undefined;
    found.set(name, value.text);
    at = value.end;
    while (isSpace(header[at])) at++;
    if (at < header.length && header[at] !== ';') return undefined;
  }
  return found;
}

interface ReadValue {
  readonly text: string;
  /** The index behind it. */
  readonly end: number;
}

function token(header: string, from: number): ReadValue | undefined {
  let end = from;
  while (end < header.length && header[end] !== ';' && !isSpace(header[end])) {
    if (header[end] === '"') return undefined;
    end++;
  }
  return end === from ? undefined : { text: header.slice(from, end), end };
}

/** Only a quotation mark and a backslash are taken for escaped: clients send file names with bare backslashes. */
function quoted(header: string, from: number): ReadValue | undefined {
  let text = '';
  for (let at = from; at < header.length; at++) {
    const char = header[at]!;
    if (char === '"') return { text, end: at + 1 };
    const next = header[at + 1];
    if (char === '\\' && (next === '"' || next === '\\')) {
      text += next;
      at++;
    } else text += char;
  }
  return undefined;
}
