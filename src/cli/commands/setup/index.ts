/** `hopgate setup CLIENT`: shows the change to a client's settings, asks, and writes it; --revert undoes it. */

import { PROTOCOL_NAMES } from '../../../conversation/protocol-names.ts';
import { redactText } from '../../../lib/text/redact.ts';
import { type CommandSpec, errorMessage, type Invocation } from '../../command.ts';
import { lineDiff } from '../../line-diff.ts';
import { loadOrReport } from '../../load-config.ts';
import { Cancelled, openQuestions } from '../../questions.ts';
import { jsonOption, YES } from '../../shared-options.ts';
import { readBytes, readText, writeWhole } from '../../whole-file.ts';
import {
  backupPath,
  folderFor,
  forgetEntry,
  isUnchanged,
  readEntry,
  restoreBackup,
  type SetupEntry,
  writeWithBackup,
} from './backups.ts';
import { claude } from './claude.ts';
import type { Client } from './client.ts';
import { codex } from './codex.ts';
import { opencode } from './opencode.ts';
import { planFor } from './plan.ts';

const CLIENTS: readonly Client[] = [claude, codex, opencode];

/** The clients that can be set up, by the name one types. */
export const CLIENT_NAMES: readonly string[] = CLIENTS.map(({ name }) => name);

interface SetupJob {
  readonly client: Client;
  readonly file: string;
  readonly folder: string;
  readonly entry: SetupEntry | undefined;
  readonly current: string | undefined;
  /** The file without the change of an earlier setup; undefined when there was no file. */
  readonly base: string | undefined;
}

function jobFor(client: Client, { environment }: Invocation['io']): SetupJob {
  const file = client.file(environment);
  const folder = folderFor(environment.home, client.name, file);
  const entry = readEntry(folder);
  const current = readText(file);
  return {
    client,
    file,
    folder,
    entry,
    current,
    base: baseOf(client, folder, entry, current, file),
  };
}

function baseOf(
  client: Client,
  folder: string,
  entry: SetupEntry | undefined,
  current: string | undefined,
  file: string,
): string | undefined {
  if (entry === undefined || current === undefined) return current;
  if (!isUnchanged(entry, readBytes(file))) return client.strip(current, entry.undo);
  return entry.existed ? readText(backupPath(folder, file)) : undefined;
}

export const SETUP: CommandSpec = {
  name: 'setup',
  group: 'Set up',
  summary: 'point a client at this gateway, or back',
  description: [
    'Shows what would change in the settings of the client, asks, and writes. Everything else in the file stays; the bytes of before are kept, and --revert puts them back.',
    'claude: the env block of ~/.claude/settings.json. codex: a provider in ~/.codex/config.toml. opencode: a provider in ~/.config/opencode/opencode.json.',
  ],
  arguments: [{ name: 'client', summary: 'what to set up', required: true, choices: CLIENT_NAMES }],
  options: [
    {
      name: 'model',
      short: 'm',
      value: 'NAME',
      summary: 'the model to ask for',
      default: 'claude: none where a route takes claude-*; else the first of the configuration',
    },
    { name: 'small-model', value: 'NAME', summary: 'claude: the model for small side jobs' },
    {
      name: 'context',
      value: 'N',
      summary: 'context window of the model in tokens, where it is not known here',
      range: [1000, 100_000_000],
    },
    {
      name: 'protocol',
      value: 'NAME',
      summary: 'opencode: what it should speak',
      choices: PROTOCOL_NAMES,
      default: 'openai-chat',
    },
    { name: 'url', value: 'URL', summary: 'where the gateway is, when not on this machine' },
    { name: 'key', value: 'KEY', summary: 'the key to send', default: 'the first of auth.keys' },
    { name: 'show', summary: 'only show what would be written' },
    { name: 'dry-run', summary: 'the same as --show' },
    jsonOption('with --show: print JSON'),
    { name: 'revert', summary: 'put back what was there before' },
    YES,
  ],
  examples: [
    { line: 'hopgate setup claude', summary: 'Claude Code asks this gateway from now on.' },
    {
      line: 'hopgate setup codex --model glm-4.7 --yes',
      summary: 'Codex, with one model, unasked.',
    },
    { line: 'hopgate setup claude --revert', summary: 'Takes it back.' },
  ],
  exits: [
    [0, 'written, or nothing to do'],
    [1, 'not written'],
  ],
  run: runSetup,
};

/** Exit 0 done (or nothing to do), 1 refused or failed. */
async function runSetup(invocation: Invocation): Promise<number> {
  const { flag, err, io } = invocation;
  const client = CLIENTS.find(({ name }) => name === invocation.arguments[0])!;
  let file = '';
  try {
    file = client.file(io.environment);
    const job = jobFor(client, io);
    return flag('revert') ? await revert(invocation, job) : await apply(invocation, job);
  } catch (thrown) {
    if (thrown instanceof Cancelled) {
      err.line('Cancelled; nothing was written.');
      return 1;
    }
    if (thrown instanceof Error && thrown.name === 'UsageError') throw thrown;
    err.line(`hopgate: ${file} was left as it is: ${errorMessage(thrown)}.`);
    return 1;
  }
}

async function apply(invocation: Invocation, job: SetupJob): Promise<number> {
  const { flag, out, err } = invocation;
  const { client, file, folder, current, base } = job;
  const config = await loadOrReport(invocation);
  if (config === undefined) return 1;
  const plan = planFor(client.name, config, invocation);
  const { text, undo } = client.apply(base, plan);
  const changed = text !== current;
  const hints = client.hints(plan, base);
  if (flag('show') || flag('dry-run')) {
    if (flag('json')) {
      const content = mask(text);
      const shown = {
        client: client.name,
        file,
        changed,
        model: plan.model ?? null,
        url: plan.url,
      };
      out.line(JSON.stringify({ ...shown, content, hints }, null, 2));
    } else show(invocation, job, text);
    return 0;
  }
  if (!changed) {
    out.line(`${client.title} is set up already; ${file} needs no change.`);
    return 0;
  }
  show(invocation, job, text);
  if (!(await confirmWrite(invocation, `Write this to ${file}?`))) return 1;
  writeWithBackup(folder, file, base, text, undo);
  out.line(`${out.paint('green', 'Written.')} ${client.title} now talks to ${plan.url}.`);
  if (base !== undefined) out.line(`The file as it was: ${backupPath(folder, file)}`);
  out.line(`Take it back with: hopgate setup ${client.name} --revert`);
  for (const hint of hints) err.line(hint);
  if (!(await gatewayAnswers(plan.url, invocation))) {
    err.line(`No gateway answers at ${plan.url} yet: "hopgate" starts one.`);
  }
  return 0;
}

const PATIENCE_MS = 1000;

async function gatewayAnswers(url: string, { io }: Invocation): Promise<boolean> {
  try {
    const { ok } = await io.fetch(`${url}/healthz`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    return ok;
  } catch {
    return false;
  }
}

async function revert(invocation: Invocation, job: SetupJob): Promise<number> {
  const { flag, out } = invocation;
  const { client, file, folder, entry, current, base } = job;
  if (entry === undefined) {
    out.line(`${client.title} was not set up by hopgate; ${file} was left as it is.`);
    return 0;
  }
  if (current === undefined) {
    forgetEntry(folder);
    out.line(`${file} is gone; there is nothing to take back.`);
    return 0;
  }
  const exact = isUnchanged(entry, readBytes(file));
  // A file that setup created and that is empty without its change is removed.
  const gone = base === undefined || (!entry.existed && isEmpty(base));
  show(invocation, { ...job, current }, gone ? '' : base);
  if (flag('show') || flag('dry-run')) return 0;
  if (!(await confirmWrite(invocation, gone ? `Remove ${file}?` : `Write this to ${file}?`)))
    return 1;
  if (exact || gone) restoreBackup(folder, gone ? { ...entry, existed: false } : entry);
  else {
    writeWhole(file, base);
    forgetEntry(folder);
  }
  out.line(
    exact
      ? `${out.paint('green', 'Reverted.')} ${file} is ${gone ? 'gone again' : 'as it was, byte for byte'}.`
      : `${out.paint('green', 'Reverted.')} What hopgate had written is out of ${file}; later changes stay.`,
  );
  return 0;
}

const isEmpty = (text: string) => /^\s*(\{\s*\}\s*)?$/.test(text);

// Members whose name says that they hold a credential, except numbers (…MAX_CONTEXT_TOKENS) and the placeholder.
const NAMED_SECRET =
  /("[^"\n]*(?:token|api_?key|secret|password)[^"\n]*"\s*:\s*")(?!\d+"|hopgate")[^"\n]+"/gi;

/** The text without credentials, for the screen. */
const mask = (text: string) => redactText(text).text.replace(NAMED_SECRET, '$1***"');

function show({ out }: Invocation, { file, current = '' }: SetupJob, text: string): void {
  const lines = lineDiff(mask(current), mask(text));
  out.line(out.paint('bold', file) + (current === '' ? ' (new)' : ''));
  for (const { sign, text: line } of lines) {
    const shown = `  ${sign} ${line}`.trimEnd();
    out.line(
      sign === '+' ? out.paint('green', shown) : sign === '-' ? out.paint('red', shown) : shown,
    );
  }
  if (lines.length === 0) out.line('    (nothing that may be shown)');
}

async function confirmWrite({ flag, io, err }: Invocation, question: string): Promise<boolean> {
  if (flag('yes')) return true;
  if (!io.interactive) {
    err.line('This needs a terminal to confirm; nothing was written. Pass --yes to write it.');
    return false;
  }
  const questions = openQuestions(io, err);
  try {
    const yes = await questions.confirm(question, true);
    if (!yes) err.line('Nothing was written.');
    return yes;
  } finally {
    questions.close();
  }
}
