/** Settings of a client without their credentials, for the screen. */

import { redactText } from '../../../lib/text/redact.ts';

// Members whose name says that they hold a credential, except numbers (…MAX_CONTEXT_TOKENS) and the placeholder.
const NAMED_SECRET =
  /("[^"\n]*(?:token|api_?key|secret|password)[^"\n]*"\s*:\s*")(?!\d+"|hopgate")[^"\n]+"/gi;

const SECRET_NAME = /token|api[_-]?key|secret|password/i;
/** What needs no mask: numbers, names of variables behind `$`, and the placeholder. */
const HARMLESS = /^(?:[\d.]+|"?\$\S+|"?hopgate"?)?$/;

/** The text of a file as it may be shown. */
export function shownLines(file: string, text: string): string {
  const shown = redactText(text).text;
  return /\.jsonc?$/.test(file)
    ? shown.replace(NAMED_SECRET, '$1***"')
    : shown.split('\n').map(shownLine).join('\n');
}

/** A line of YAML, TOML or a file of variables: `NAME=value`, `name: value`. */
function shownLine(line: string): string {
  const at = line.search(/[:=]/);
  if (at < 0 || !SECRET_NAME.test(line.slice(0, at))) return line;
  if (HARMLESS.test(line.slice(at + 1).trim())) return line;
  return `${line.slice(0, at + 1)} ***`;
}
