/** `hopgate models update`: takes over a newer, signed file of model facts, or says why not. */

import { mkdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { followModels, homeModelsPath, modelsDate } from '../../config/models/model-facts.ts';
import { problemOfModels } from '../../config/models/model-schema.ts';
import { ModelsFile, verifiedText } from '../../config/models/models-file.ts';
import { readUpTo } from '../../lib/http/read-up-to.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import { errorMessage, type Invocation } from '../command.ts';
import { writeWhole } from '../whole-file.ts';

/** Ten times what the file has. */
const MAX_BYTES = 5 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

/** The address of the newest release of the file. */
const NEWEST = new URL('models.jsonl', manifest.homepage).href;

/** Exit 0 when the file is in force now, 1 when it was refused. */
export async function updateModels(
  invocation: Invocation,
  source: string = NEWEST,
): Promise<number> {
  const { out, err, flag, io } = invocation;
  const { home } = io.environment;
  followModels(home);
  const before = modelsDate();
  const refused = (why: string): number => {
    const message = `${printableLine(source, 300)} is refused: ${why}. The facts of ${before} stay.`;
    if (flag('json')) out.line(JSON.stringify({ ok: false, date: before, problem: why }));
    else err.line(`hopgate: ${message}`);
    return 1;
  };
  let signed: string;
  try {
    signed = await textOf(source, invocation);
  } catch (thrown) {
    return refused(errorMessage(thrown));
  }
  const text = verifiedText(signed);
  if (text === undefined) return refused('its signature is not that of a release');
  const problem = problemOfModels(text);
  if (problem !== undefined) return refused(problem);
  const { date } = new ModelsFile(text);
  if (date < before) return refused(`it is of ${date}, older than what is known`);
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    writeWhole(homeModelsPath(home), signed);
  } catch (thrown) {
    return refused(errorMessage(thrown));
  }
  if (flag('json')) out.line(JSON.stringify({ ok: true, date, before }));
  else {
    out.line(`${out.paint('green', 'ok')}  model facts of ${date} (before: ${before})`);
    out.line(`    ${homeModelsPath(home)}; a running gateway takes them over at once`);
  }
  return 0;
}

async function textOf(source: string, { io }: Invocation): Promise<string> {
  if (!/^https?:\/\//.test(source)) {
    const bytes = readFileSync(resolve(io.cwd, source));
    if (bytes.length > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
    return bytes.toString();
  }
  const response = await io.fetch(source, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`the answer has status ${response.status}`);
  const { bytes, truncated } = await readUpTo(response.body, MAX_BYTES);
  if (truncated) throw new Error(`it has more than ${MAX_BYTES} bytes`);
  return new TextDecoder().decode(bytes);
}
