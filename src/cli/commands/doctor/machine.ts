/** Checks of this machine: is the port free, can the folders be written, are enough open files allowed? */

import {
  accessSync,
  constants,
  existsSync,
  readFileSync,
  type StatsFs,
  statfsSync,
  statSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import type { Config } from '../../../config/config.ts';
import { modelWarnings } from '../../../config/models/ended-models.ts';
import { homeModelsPath, keptModels, modelsDate } from '../../../config/models/model-facts.ts';
import type { Listen } from '../../../config/sections/listen.ts';
import { openFileWithKeys } from '../../../config/servable.ts';
import {
  endsSoon,
  isOpenToOthers,
  type KeyPair,
  readKeyPair,
  UnusableKeyPair,
} from '../../../lib/http/key-pair.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';
import { printableLine } from '../../../lib/text/printable-text.ts';
import { redactText } from '../../../lib/text/redact.ts';
import type { ToolCheck } from '../../command.ts';
import { fetchOwn, reachableUrl } from '../../served-models.ts';
import { plural } from '../../terminal.ts';
import { type Finding, finding } from './diagnosis.ts';

/** Free, or taken by a gateway that is running already. */
export async function checkPort(listen: Listen, fetch: typeof globalThis.fetch): Promise<Finding> {
  if (listen.port === 0) return finding('port', 'ok', 'any free port will be used');
  const at = `${listen.host}:${listen.port}`;
  const fail = (message: string, hint?: string) => finding('port', 'fail', message, hint);
  const code = await tryListen(listen);
  if (code === undefined) return finding('port', 'ok', `${at} is free`);
  if (code === 'EACCES') {
    const hint = 'Ports below 1024 need privileges; choose a higher one in listen.';
    return fail(`${at} may not be used`, hint);
  }
  if (code === 'EADDRNOTAVAIL') {
    const hint = 'Put 127.0.0.1 or 0.0.0.0 into listen.';
    return fail(`${listen.host} is no address of this machine`, hint);
  }
  if (code !== 'EADDRINUSE') return fail(`${at} cannot be used (${code})`);
  if (await isHopgate(reachableUrl(listen), fetchOwn(listen, fetch))) {
    return finding('port', 'ok', `hopgate is running on ${at}`);
  }
  const hint = 'Stop it, or choose another port in listen or with --port.';
  return fail(`another program listens on ${at}`, hint);
}

/** The certificate, how long it is valid, and whether its key is private; undefined for plain HTTP. */
export function checkCertificate({ tls }: Listen, now: number): Finding | undefined {
  if (tls === undefined) return undefined;
  const { certFile, keyFile } = tls;
  let pair: KeyPair;
  try {
    pair = readKeyPair(certFile, keyFile);
  } catch (thrown) {
    // `problemOfServing` reports what is wrong with the files.
    if (thrown instanceof UnusableKeyPair) return undefined;
    throw thrown;
  }
  const names = pair.names.join(', ');
  const until = new Date(pair.until).toISOString();
  if (pair.until < now) {
    return finding('tls', 'fail', `the certificate for ${names} ended on ${until}`, RENEW);
  }
  if (pair.from > now) {
    const from = new Date(pair.from).toISOString();
    return finding('tls', 'fail', `the certificate for ${names} begins on ${from}`, RENEW);
  }
  if (endsSoon(pair, now)) {
    return finding('tls', 'warn', `the certificate for ${names} ends on ${until}`, RENEW);
  }
  if (isOpenToOthers(keyFile)) {
    return finding(
      'tls',
      'warn',
      `other users of this machine can read or change ${keyFile}`,
      'Make it private: chmod 600, and the user of the gateway as its owner.',
    );
  }
  return finding('tls', 'ok', `the certificate is for ${names}, until ${until}`);
}

/** A configuration file that shows its keys to other users; undefined: there is none, or it does not. */
export function checkConfigFile(config: Config): Finding | undefined {
  const words = openFileWithKeys(config);
  return words === undefined
    ? undefined
    : finding('config', 'warn', `${config.source.path} ${words}`);
}

const RENEW = 'Renew it; a running gateway takes the new files without a restart.';

function tryListen({ host, port }: Listen): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

async function isHopgate(url: string, fetch: typeof globalThis.fetch): Promise<boolean> {
  try {
    // `/metrics` may want a key; this needs none.
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(2000),
    });
    const about = tryParse(await response.text());
    return isObject(about) && about.name === 'hopgate';
  } catch {
    return false;
  }
}

/** Can something be written at (or be created below the nearest folder of) `path`? Writes nothing. */
export function checkWritable(about: string, path: string): Finding {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  if (!statSync(at).isDirectory()) {
    return finding(about, 'fail', `${at} is not a folder`, 'Move it away, or set HOPGATE_HOME.');
  }
  try {
    accessSync(at, constants.W_OK | constants.X_OK);
    const room = diskRoom(statfsSync(at));
    if (room !== undefined) {
      const { level, free } = room;
      const what = `${path} can be written, but ${free} free on its disk`;
      return finding(about, level, what, 'Make room there, or move the folder to another disk.');
    }
    return finding(about, 'ok', at === path ? `${path} can be written` : `${path} can be created`);
  } catch {
    return finding(
      about,
      'fail',
      `${path} cannot be written`,
      `Change the permissions of ${at}, or set HOPGATE_HOME.`,
    );
  }
}

/** Bytes free below which databases and samples soon fail, and below which they fail now. */
const LITTLE_ROOM = 64 * 2 ** 20;
const NO_ROOM = 2 ** 20;

/** What is short on a disk; undefined where there is room. A file system that counts no files has 0 of them in all. */
export function diskRoom({
  bavail,
  bsize,
  files,
  ffree,
}: Pick<StatsFs, 'bavail' | 'bsize' | 'files' | 'ffree'>):
  | { readonly level: 'fail' | 'warn'; readonly free: string }
  | undefined {
  if (files > 0 && ffree === 0) return { level: 'fail', free: 'no file entries (inodes) are' };
  const free = bavail * bsize;
  if (free >= LITTLE_ROOM) return undefined;
  const amount =
    free < NO_ROOM ? `${Math.floor(free / 1024)} KB` : `${Math.floor(free / NO_ROOM)} MB`;
  return { level: free < NO_ROOM ? 'fail' : 'warn', free: `only ${amount} are` };
}

const ENOUGH_FILES = 2048;

/** Every stream holds two sockets open, so the usual limit of 1024 is reached at about 500 streams. */
export function checkOpenFiles(limits = '/proc/self/limits'): Finding {
  if (!existsSync(limits))
    return finding('files', 'skip', 'the limit of open files is not known here');
  const soft = /^Max open files\s+(\S+)/m.exec(readFileSync(limits, 'utf8'))?.[1] ?? 'unlimited';
  if (soft === 'unlimited' || Number(soft) >= ENOUGH_FILES) {
    return finding('files', 'ok', `${soft} open files allowed`);
  }
  return finding(
    'files',
    'warn',
    `only ${soft} open files allowed, enough for about ${Math.floor(Number(soft) / 2)} streams at once`,
    'Raise it: ulimit -n 65536, or LimitNOFILE=65536 in the service.',
  );
}

const MAX_WORDS = 500;

/** The finding for an MCP server or an HTTP tool, whose own words may hold anything. */
export const toolFinding = ({ about, status, message }: ToolCheck): Finding =>
  finding(about, status, printableLine(redactText(message).text, MAX_WORDS));

/** Facts of models age: after so many days a newer file is worth a look. */
const OLD_FACTS_DAYS = 90;

/** How old the facts of models are, whether the home's own can be used, and models of the file that are gone. */
export function checkModels(config: Config, home: string, now: number): readonly Finding[] {
  const kept = keptModels(home);
  const date = modelsDate();
  const days = Math.floor((now - Date.parse(date)) / 86_400_000);
  const from = kept instanceof Object && kept.date === date ? homeModelsPath(home) : 'built in';
  const age = `facts of ${date} (${from}), ${plural(days, 'day')} old`;
  const warnings = modelWarnings(config, now).map(({ path, message }) =>
    finding('models', 'warn', `${path}: ${message}`),
  );
  const unused =
    typeof kept === 'string' ? `${homeModelsPath(home)} is not used: ${kept}; ${age}` : undefined;
  if (unused === undefined && days <= OLD_FACTS_DAYS) {
    return [finding('models', 'ok', age), ...warnings];
  }
  return [finding('models', 'warn', unused ?? age, 'Run "hopgate models update".'), ...warnings];
}
