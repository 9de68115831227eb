import { PROTOCOL_NAMES } from '../../../conversation/protocol-names.ts';
import { redactText } from '../../../lib/text/redact.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { type CommandSpec, type Invocation, YES } from '../../command.ts';
import { printLineDiff } from '../../line-diff.ts';
import { loadToLook } from '../../load-config.ts';
import { Cancelled, openQuestions } from '../../questions.ts';
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
import type { Client, EditUndo, SettingsFile } from './client.ts';
import { CLIENT_FILES, CLIENT_NAMES } from './client-names.ts';
import { CLIENTS } from './clients/index.ts';
import { planFor } from './plan.ts';

/** One file of the client's settings. */
interface SetupJob {
  readonly settings: SettingsFile;
  readonly file: string;
  readonly folder: string;
  readonly entry: SetupEntry | undefined;
  readonly current: string | undefined;
  /** The file without the change of an earlier setup; undefined when there was no file. */
  readonly base: string | undefined;
}

interface ChangeOfJob {
  readonly job: SetupJob;
  readonly text: string;
  readonly undo: readonly EditUndo[];
}

/** What went wrong with a file, and that it was left alone. */
class FileProblem extends Error {}

/** @throws FileProblem */
function about<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw new FileProblem(`${file} was left as it is: ${messageOf(thrown)}.`);
  }
}

function jobsFor(client: Client, { environment }: Invocation['io']): readonly SetupJob[] {
  return client.files.map((settings) => {
    const file = about(client.title, () => settings.path(environment));
    const folder = folderFor(environment.home, client.name, file);
    return about(file, () => {
      const entry = readEntry(folder);
      const current = readText(file);
      const base = baseOf(settings, folder, entry, current, file);
      return { settings, file, folder, entry, current, base };
    });
  });
}

function baseOf(
  settings: SettingsFile,
  folder: string,
  entry: SetupEntry | undefined,
  current: string | undefined,
  file: string,
): string | undefined {
  if (entry === undefined || current === undefined) return current;
  if (!isUnchanged(entry, readBytes(file))) return settings.strip(current, entry.undo);
  return entry.existed ? readText(backupPath(folder, file)) : undefined;
}

export const SETUP: CommandSpec = {
  name: 'setup',
  others: ['configure', 'connect'],
  summary: 'configure a client to use this gateway, or undo it',
  description: [
    "Shows what would change in the client's settings, asks, and writes it. Everything else in the file stays as it is. --revert restores the file byte for byte.",
    `${Object.entries(CLIENT_FILES)
      .map(([name, files]) => `${name}: ${files}`)
      .join('. ')}.`,
    'Context windows come from the model catalogue.',
  ],
  arguments: [
    { name: 'client', summary: 'the client to configure', required: true, choices: CLIENT_NAMES },
  ],
  options: {
    model: {
      short: 'm',
      value: 'NAME',
      summary: 'the model to use',
      default:
        'claude, claude-desktop: none if a route takes claude-*; otherwise the first of the configuration',
    },
    'small-model': { value: 'NAME', summary: 'claude: the model for small side jobs' },
    context: {
      value: 'N',
      summary: "the model's context window in tokens, if hopgate does not know it",
      range: [1000, 100_000_000],
    },
    protocol: {
      value: 'NAME',
      summary: 'the protocol to use, for clients that speak several',
      choices: PROTOCOL_NAMES,
      default: 'opencode, kilo: openai-chat; the others: openai-responses',
    },
    url: { value: 'URL', summary: "the gateway's URL, if it is on another machine" },
    key: { value: 'KEY', summary: 'the key to send', default: 'the first of auth.keys' },
    show: { summary: 'only show what would be written' },
    'dry-run': { summary: 'the same as --show' },
    json: { summary: 'with --show: print JSON' },
    revert: { summary: 'restore the previous settings' },
    yes: YES,
  },
  examples: {
    'hopgate setup claude': 'Configures Claude Code to use this gateway.',
    'hopgate setup codex --model glm-4.7 --yes': 'Configures Codex with one model, without asking.',
    'hopgate setup claude --revert': 'Restores the settings from before.',
  },
  exits: { 0: 'written, or nothing to do', 1: 'not written' },
  run: runSetup,
};

async function runSetup(invocation: Invocation): Promise<number> {
  const { flag, err, io } = invocation;
  const client = CLIENTS.find(({ name }) => name === invocation.arguments[0])!;
  try {
    const jobs = jobsFor(client, io);
    return flag('revert')
      ? await revert(invocation, client, jobs)
      : await apply(invocation, client, jobs);
  } catch (thrown) {
    if (thrown instanceof Cancelled) err.line('Cancelled; nothing was written.');
    else if (thrown instanceof FileProblem) err.line(`hopgate: ${thrown.message}`);
    else throw thrown;
    return 1;
  }
}

async function apply(
  invocation: Invocation,
  client: Client,
  jobs: readonly SetupJob[],
): Promise<number> {
  const { flag, out, err } = invocation;
  const config = await loadToLook(invocation);
  if (config === undefined) return 1;
  const plan = planFor(client, config, invocation);
  const changes = jobs.flatMap((job): readonly ChangeOfJob[] => {
    const change = about(job.file, () => job.settings.apply(job.base, plan));
    return change === undefined ? [] : [{ job, ...change }];
  });
  const hints = client.hints(plan, jobs[0]?.base);
  if (jobs.length === 0) {
    if (flag('json')) {
      const shown = { client: client.name, model: plan.model ?? null, url: plan.url, hints };
      out.line(JSON.stringify(shown, null, 2));
    } else for (const hint of hints) out.line(hint);
    return 0;
  }
  if (flag('show') || flag('dry-run')) {
    if (flag('json')) {
      const [first, ...others] = changes.map(({ job, text }) => ({
        file: job.file,
        changed: text !== job.current,
        content: shownLines(job.file, text),
      }));
      const shown = { client: client.name, ...first, model: plan.model ?? null, url: plan.url };
      const more = others.length === 0 ? {} : { more: others };
      out.line(JSON.stringify({ ...shown, ...more, hints }, null, 2));
    } else for (const { job, text } of changes) show(invocation, job, text);
    return 0;
  }
  const changed = changes.filter(({ job, text }) => text !== job.current);
  if (changed.length === 0) {
    out.line(`${client.title} is set up already; ${filesOf(jobs)} needs no change.`);
    return 0;
  }
  for (const { job, text } of changed) show(invocation, job, text);
  const files = filesOf(changed.map(({ job }) => job));
  if (!(await confirmWrite(invocation, `Write this to ${files}?`))) return 1;
  for (const { job, text, undo } of changed) {
    about(job.file, () => writeWithBackup(job.folder, job.file, job.base, text, undo));
  }
  out.line(`${out.paint('green', 'Written.')} ${client.title} now talks to ${plan.url}.`);
  for (const { job } of changed) {
    if (job.base === undefined) continue;
    out.line(`The file as it was: ${backupPath(job.folder, job.file)}`);
  }
  out.line(`Undo it with: hopgate setup ${client.name} --revert`);
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

async function revert(
  invocation: Invocation,
  client: Client,
  jobs: readonly SetupJob[],
): Promise<number> {
  const { flag, out } = invocation;
  const done = jobs.filter(({ entry }) => entry !== undefined);
  if (jobs.length === 0) {
    out.line(`${client.title} keeps its settings itself; hopgate wrote nothing.`);
    return 0;
  }
  if (done.length === 0) {
    out.line(`${client.title} was not set up by hopgate; ${filesOf(jobs)} was left as it is.`);
    return 0;
  }
  const left = done.filter(({ current }) => current !== undefined);
  for (const job of done) {
    if (job.current !== undefined) continue;
    forgetEntry(job.folder);
    out.line(`${job.file} is gone; there is nothing to take back.`);
  }
  if (left.length === 0) return 0;
  for (const job of left) show(invocation, job, isGone(job) ? '' : (job.base ?? ''));
  if (flag('show') || flag('dry-run')) return 0;
  if (!(await confirmWrite(invocation, revertQuestion(left)))) return 1;
  for (const job of left) out.line(about(job.file, () => reverted(job, out)));
  return 0;
}

/** A file that setup created and that is empty without its change is removed. */
const isGone = ({ base, entry }: SetupJob): boolean =>
  base === undefined || (entry?.existed === false && isEmpty(base));

const filesOf = (jobs: readonly SetupJob[]) => jobs.map(({ file }) => file).join(' and ');

function revertQuestion(jobs: readonly SetupJob[]): string {
  const gone = jobs.filter(isGone);
  if (gone.length === 0) return `Write this to ${filesOf(jobs)}?`;
  const rest = jobs.filter((job) => !isGone(job));
  return rest.length === 0
    ? `Remove ${filesOf(gone)}?`
    : `Write this to ${filesOf(rest)}, and remove ${filesOf(gone)}?`;
}

/** @returns what was done, in words */
function reverted(job: SetupJob, out: Invocation['out']): string {
  const { file, folder, entry, base } = job;
  const gone = isGone(job);
  const exact = isUnchanged(entry!, readBytes(file));
  if (exact || gone) restoreBackup(folder, gone ? { ...entry!, existed: false } : entry!);
  else {
    writeWhole(file, base ?? '');
    forgetEntry(folder);
  }
  const word = out.paint('green', 'Reverted.');
  if (!exact)
    return `${word} Only what hopgate wrote was removed from ${file}; later changes stay.`;
  return `${word} ${file} ${gone ? 'was removed' : 'is as it was, byte for byte'}.`;
}

const isEmpty = (text: string) => /^\s*(\{\s*\}\s*)?$/.test(text);

function show({ out }: Invocation, { file, current = '' }: SetupJob, text: string): void {
  out.line(out.paint('bold', file) + (current === '' ? ' (new)' : ''));
  if (printLineDiff(out, shownLines(file, current), shownLines(file, text)) === 0) {
    out.line('    (nothing that may be shown)');
  }
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

// Members whose name says that they hold a credential, except numbers (…MAX_CONTEXT_TOKENS) and the placeholder.
const NAMED_SECRET =
  /("[^"\n]*(?:token|api_?key|secret|password)[^"\n]*"\s*:\s*")(?!\d+"|hopgate")[^"\n]+"/gi;

const SECRET_NAME = /token|api[_-]?key|secret|password/i;
/** Values that need no mask: numbers, names of variables behind `$`, and the placeholder. */
const HARMLESS = /^(?:[\d.]+|"?\$\S+|"?hopgate"?)?$/;

function shownLines(file: string, text: string): string {
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
