import { existsSync } from 'node:fs';
import { expandHome } from '../../../config/environment.ts';
import { describeProblem } from '../../../config/file/problem.ts';
import { parseConfig, userConfig } from '../../../config/load.ts';
import type { Category } from '../../../config/sections/categories.ts';
import { parseListen } from '../../../config/sections/listen.ts';
import { probe } from '../../../config/vendors/discover.ts';
import { isLoopback } from '../../../lib/http/local-address.ts';
import { isGlob } from '../../../lib/text/glob.ts';
import { secretBase36 } from '../../../lib/text/ids.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { type PlatformName, PRESETS, presetNames, presetOf } from '../../../vendors/index.ts';
import { type CommandSpec, type Invocation, partsOf, UsageError, YES } from '../../command.ts';
import { hint } from '../../parse.ts';
import { Cancelled, openQuestions, type Questions } from '../../questions.ts';
import { wrap } from '../../terminal.ts';
import { writeWhole } from '../../whole-file.ts';
import { type Answers, configText, modelsOf, type ProviderAnswer } from './config-text.ts';

/** The categories that may get a rule of their own, in the order of the rules. */
const ROUTED_CATEGORIES: readonly Category[] = [
  'vision',
  'websearch',
  'longcontext',
  'background',
  'thinking',
];

export const INIT: CommandSpec = {
  name: 'init',
  summary: 'write a configuration by answering a few questions',
  description: [
    'Vendors whose keys are in the environment are preselected. The file refers to the keys of vendors by their variables; it holds only the key of --auth. An existing file is not overwritten without --force.',
  ],
  options: {
    yes: { ...YES, summary: 'ask no questions; use the keys and servers that are found' },
    force: { summary: 'overwrite an existing file' },
    providers: { value: 'NAMES', summary: 'vendors, separated by commas' },
    listen: { value: 'HOST:PORT', summary: 'address and port', default: '127.0.0.1:5520' },
    auth: { summary: 'generate a key that clients must send' },
  },
  examples: {
    'hopgate init': 'Asks questions and writes ~/.config/hopgate/hopgate.yaml.',
    'hopgate init --yes --providers glm,deepseek --config ./hopgate.yaml':
      'For scripts: two vendors, and your own file.',
  },
  exits: { 0: 'written', 1: 'not written: the file exists, or you cancelled' },
  run: runInit,
};

async function runInit(invocation: Invocation): Promise<number> {
  const { flag, text, io, out, err } = invocation;
  const standard = text('config') ?? io.environment.configPath ?? userConfig(io.environment);
  try {
    const interactive = !flag('yes');
    if (interactive && !io.interactive) {
      err.line(
        'This needs a terminal to ask questions. Pass --yes to use what the environment offers.',
      );
      return 1;
    }
    const questions = interactive ? openQuestions(io, err) : undefined;
    if (interactive) greet(invocation);
    try {
      const where =
        questions === undefined ? standard : await questions.ask('Where to write it?', standard);
      const file = expandHome(where, io.environment.userHome);
      if (existsSync(file) && !flag('force')) {
        err.line(`${file} exists; it was left as it is. Pass --force to write over it.`);
        return 1;
      }
      const answers = await (questions === undefined
        ? defaultAnswers(invocation)
        : askQuestions(invocation, questions));
      return write(invocation, file, answers);
    } finally {
      questions?.close();
    }
  } catch (thrown) {
    if (!(thrown instanceof Cancelled)) throw thrown;
    out.line('Cancelled; nothing was written.');
    return 1;
  }
}

function greet({ err }: Invocation): void {
  err.line(err.paint('bold', 'This writes a configuration for hopgate.'));
  err.line('Press Enter to accept the default in brackets. Ctrl-C stops, and nothing is written.');
  err.line();
}

function write({ io, out, err }: Invocation, file: string, answers: Answers): number {
  const content = configText(answers);
  const result = parseConfig(content, file, io.environment);
  if (!result.ok) {
    for (const problem of result.problems) err.line(describeProblem(problem, file));
    err.line('These answers do not fit together; nothing was written.');
    return 1;
  }
  try {
    writeWhole(file, content);
  } catch (thrown) {
    err.line(`${file} could not be written: ${messageOf(thrown)}.`);
    return 1;
  }
  out.line(`${out.paint('green', 'Written:')} ${file}`);
  for (const { name, key, preset } of answers.providers) {
    const variables = preset === undefined ? [] : (presetOf(preset)?.variables ?? []);
    if (key === undefined && variables.length > 0 && !variables.some(io.environment.variable)) {
      out.line(`  ${name} has no key yet: export ${variables[0]}=…`);
    }
  }
  if (answers.clientKey !== undefined) out.line(`  Clients send this key: ${answers.clientKey}`);
  // Where every command looks by itself, it need not be named.
  const { configPath } = io.environment;
  const named = file === (configPath ?? userConfig(io.environment)) ? '' : ` --config ${file}`;
  const [test, serve, setup] = ['doctor', 'serve', 'setup claude'].map(
    (command) => `hopgate ${command}${named}`,
  );
  out.line(`Next: ${test}, then ${serve}, then ${setup} (or codex, opencode).`);
  return 0;
}

/** The vendors whose key is in the environment, one for each variable. */
function providersWithKeys({ io }: Invocation): readonly ProviderAnswer[] {
  const seen = new Set<string>();
  return Object.entries(PRESETS).flatMap(([name, { variables, endpoints }]): ProviderAnswer[] => {
    const variable = variables.find(
      (candidate) => io.environment.variable(candidate) !== undefined,
    );
    if (variable === undefined || seen.has(variable) || Object.keys(endpoints).length === 0)
      return [];
    seen.add(variable);
    return [{ name, preset: name, key: `\${${variable}}` }];
  });
}

/** The most models of a local server that are named in the file. */
const MAX_NAMED = 20;

async function detectProviders(invocation: Invocation): Promise<readonly ProviderAnswer[]> {
  const { io } = invocation;
  const servers = await probe((url, init) => io.fetch(url, init));
  return [
    ...providersWithKeys(invocation),
    ...servers.map(({ name, entry, models }): ProviderAnswer => {
      const { preset, base_url: baseUrl } = entry as { preset: string; base_url?: string };
      // The star also takes models that the server loads later.
      const named = [...models.filter((model) => !isGlob(model)).slice(0, MAX_NAMED), '*'];
      return { name, preset, ...(baseUrl === undefined ? {} : { baseUrl }), models: named };
    }),
  ];
}

/** @throws UsageError for an unknown vendor */
function namedProviders(
  names: string,
  found: readonly ProviderAnswer[],
  invocation: Invocation,
): readonly ProviderAnswer[] {
  const list = names.split(/[\s,]+/).filter((name) => name !== '' && name !== 'none');
  return [...new Set(list)].map((name) => {
    const known = found.find((answer) => answer.name === name);
    if (known !== undefined) return known;
    const preset = presetOf(name);
    if (preset?.platform !== undefined) {
      return { name, preset: name, place: usualPlace(preset.platform, invocation) };
    }
    if (preset === undefined || Object.keys(preset.endpoints).length === 0) {
      throw new UsageError(`There is no vendor "${name}".${hint(name, presetNames())}`);
    }
    return { name, preset: name };
  });
}

/** Where a platform's requests go: from the environment, else words to be replaced. */
function usualPlace(platform: PlatformName, { io }: Invocation): Record<string, string> {
  const { variable } = io.environment;
  if (platform === 'bedrock') {
    return { region: variable('AWS_REGION') ?? variable('AWS_DEFAULT_REGION') ?? 'us-east-1' };
  }
  if (platform === 'azure') return { resource: variable('AZURE_RESOURCE_NAME') ?? 'my-resource' };
  return {
    project: variable('GOOGLE_CLOUD_PROJECT') ?? 'my-project',
    location: variable('GOOGLE_CLOUD_LOCATION') ?? 'global',
  };
}

async function withPlace(provider: ProviderAnswer, questions: Questions): Promise<ProviderAnswer> {
  if (provider.place === undefined) return provider;
  const place: Record<string, string> = {};
  for (const [option, usual] of Object.entries(provider.place)) {
    place[option] = await questions.ask(`  ${option} of ${provider.name}?`, usual);
  }
  return { ...provider, place };
}

/** The first model that is a name and not a pattern, with its provider. */
function firstTarget(providers: readonly ProviderAnswer[]): string | undefined {
  for (const provider of providers) {
    const model = modelsOf(provider).find((name) => !isGlob(name));
    if (model !== undefined) return `${provider.name}/${model}`;
  }
  const any = providers[0];
  return any === undefined ? undefined : `${any.name}/*`;
}

/** Whether an address to listen on, as it stands in the file, is for this machine only. */
function listensOnLoopback(listen: string): boolean {
  const parsed = parseListen(listen);
  return parsed !== undefined && isLoopback(parsed.host);
}
const newKey = () => `hg-${secretBase36(32)}`;

async function defaultAnswers(invocation: Invocation): Promise<Answers> {
  const { text, flag } = invocation;
  const found = await detectProviders(invocation);
  const names = text('providers');
  const providers = names === undefined ? found : namedProviders(names, found, invocation);
  const listen = text('listen') ?? '127.0.0.1:5520';
  return {
    listen,
    providers,
    clientKey: flag('auth') || !listensOnLoopback(listen) ? newKey() : undefined,
    fallback: firstTarget(providers),
    categories: {},
  };
}

async function askQuestions(invocation: Invocation, questions: Questions): Promise<Answers> {
  const { err, text } = invocation;
  const found = await detectProviders(invocation);
  for (const { name, key, models } of found) {
    err.line(
      key === undefined
        ? `  found a server: ${name}, with ${models?.[0]}`
        : `  found a key for ${name} in ${key}`,
    );
  }
  err.line();
  err.line(err.paint('bold', 'Vendors known here'));
  const [own, others] = [true, false].map((local) =>
    Object.keys(PRESETS).filter((name) => (PRESETS[name]!.local === true) === local),
  );
  for (const [title, names] of [
    ['by key', others!],
    ['on this machine', own!],
  ] as const) {
    const lines = wrap(names.join(', '), err.width, 20);
    err.line(`  ${title.padEnd(18)}${lines[0]!.trimStart()}`);
    for (const line of lines.slice(1)) err.line(line);
  }
  err.line();
  const preselected = text('providers') ?? (found.map(({ name }) => name).join(', ') || 'none');
  const picked = await untilValid(invocation, async () =>
    namedProviders(
      await questions.ask('Which providers, separated by commas?', preselected),
      found,
      invocation,
    ),
  );
  const providers: ProviderAnswer[] = [];
  for (const provider of picked) {
    providers.push(await withPlace(await withKey(provider, questions), questions));
  }
  while (await questions.confirm('Add a server of your own?', false)) {
    providers.push(await ownServer(questions, providers));
  }
  const listen = await questions.ask(
    'Listen on which address and port?',
    text('listen') ?? '127.0.0.1:5520',
  );
  const open = !listensOnLoopback(listen);
  const guarded = await questions.confirm(
    open ? 'Others can reach that. Ask clients for a key?' : 'Ask clients for a key?',
    open || invocation.flag('auth'),
  );
  const first = firstTarget(providers);
  const fallback =
    first === undefined
      ? undefined
      : await questions.ask('Which provider/model answers names that no provider lists?', first);
  const categories: Partial<Record<Category, string>> = {};
  if (
    first !== undefined &&
    (await questions.confirm(
      'Send some kinds of request (code, long prompts, images …) to models of their own?',
      false,
    ))
  ) {
    for (const category of ROUTED_CATEGORIES) {
      const target = await questions.ask(`  ${category}: which provider/model? (Enter: no rule)`);
      if (target !== '') categories[category] = target;
    }
  }
  return { listen, providers, clientKey: guarded ? newKey() : undefined, fallback, categories };
}

/** Asks until the answer can be used. */
async function untilValid<T>({ err }: Invocation, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (thrown) {
      if (!(thrown instanceof UsageError)) throw thrown;
      err.line(thrown.message);
    }
  }
}

async function withKey(provider: ProviderAnswer, questions: Questions): Promise<ProviderAnswer> {
  const variable = presetOf(provider.preset ?? '')?.variables[0];
  if (provider.key !== undefined || variable === undefined) return provider;
  const key = await questions.ask(`  Key for ${provider.name}? (Enter: later, from $${variable})`);
  return key === '' ? provider : { ...provider, key };
}

async function ownServer(
  questions: Questions,
  others: readonly ProviderAnswer[],
): Promise<ProviderAnswer> {
  const name = await questions.ask('  Its name?', `server${others.length + 1}`);
  const protocol = await questions.ask(
    '  What does it speak: openai-chat, openai-responses or anthropic-messages?',
    'openai-chat',
  );
  const baseUrl = await questions.ask('  Its base URL?', 'http://127.0.0.1:8000/v1');
  const key = await questions.ask(`  Its key? (Enter: none; \${NAME} takes a variable)`);
  const models = partsOf(await questions.ask('  Its models, separated by commas?', '*'));
  const server = { name, protocol: protocol as ProviderAnswer['protocol'], baseUrl, models };
  return key === '' ? server : { ...server, key };
}
