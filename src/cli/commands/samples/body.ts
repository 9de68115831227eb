/** `hopgate samples show ID STAGE`: prints the recorded body of one stage. */

import { type Json, tryParse } from '../../../lib/json/json.ts';
import { printableLines } from '../../../lib/text/printable-text.ts';
import { stageBytes } from '../../../samples/decode/readable-body.ts';
import type { SampleMeta, SampleStore } from '../../../samples/sample.ts';
import type { Invocation } from '../../command.ts';
import { bytes as sizeText } from './units.ts';

/** The longest string on a terminal without --full. */
const MAX_CHARS = 300;

/**
 * On a terminal JSON is indented and long strings are cut, unless `--full` asks for all of it; other texts are
 * printed as they are. Elsewhere the bytes are written as they were recorded. Binary bodies are named, not printed.
 * @throws GatewayError not_found for an unknown stage
 */
export function printBody(
  store: SampleStore,
  meta: SampleMeta,
  stage: string,
  { out, err, flag, io }: Invocation,
): number {
  const body = stageBytes(store, meta, stage);
  const text = textOf(body);
  if (text === undefined) {
    out.line(`${sizeText(body.length)} that are not text: ${store.path(meta, stage)}`);
    return 0;
  }
  if (out.columns === undefined) {
    io.stdout.write(text);
    return 0;
  }
  const value = tryParse(text);
  if (value === undefined) {
    out.line(printableLines(text.trimEnd()));
    return 0;
  }
  let cut = 0;
  const shown = flag('full')
    ? value
    : shortened(value, (length) => {
        cut++;
        return `… (${length} characters)`;
      });
  out.line(printableLines(JSON.stringify(shown, null, 2)));
  if (cut > 0) {
    err.line(`${cut === 1 ? 'One long text is' : `${cut} long texts are`} cut; --full prints all.`);
  }
  return 0;
}

function textOf(body: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The value with long strings cut; `mark` gives what follows the rest of a string of this length. */
function shortened(value: Json, mark: (length: number) => string): Json {
  return JSON.parse(JSON.stringify(value), (_, member: unknown) =>
    typeof member === 'string' && member.length > MAX_CHARS
      ? member.slice(0, MAX_CHARS) + mark(member.length)
      : member,
  ) as Json;
}
