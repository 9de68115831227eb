/** Writes a commented configuration file from the answers of `hopgate init`. */

import { CONFIG_VERSION } from '../../../config/file/migrations.ts';
import type { Category } from '../../../config/sections/categories.ts';
import type { ProtocolName } from '../../../conversation/protocol-names.ts';
import { presetOf } from '../../../vendors/index.ts';

export interface ProviderAnswer {
  readonly name: string;
  /** A known vendor; left out: `protocol` and `baseUrl` are given. */
  readonly preset?: string;
  readonly protocol?: ProtocolName;
  readonly baseUrl?: string;
  /** A reference to a variable (`${NAME}`) or the key itself; left out: the preset's variables. */
  readonly key?: string;
  /** Names and globs; left out: the preset's. */
  readonly models?: readonly string[];
  /** What a platform needs: `region`, or `project` and `location`. */
  readonly place?: Readonly<Record<string, string>>;
}

export interface Answers {
  readonly listen: string;
  readonly providers: readonly ProviderAnswer[];
  /** The key that clients must send; left out: no key. */
  readonly clientKey?: string;
  /** `provider/model` for all names that no other rule takes, such as the default names of agents. */
  readonly fallback?: string;
  /** `provider/model` by kind of request. */
  readonly categories: Readonly<Partial<Record<Category, string>>>;
}

const PLAIN = /^[A-Za-z][A-Za-z0-9_./-]*$/;
/** A port, or a host and a port: text that YAML reads as it stands. `*` and `[` mean something else there. */
const PLAIN_LISTEN = /^(?:[A-Za-z0-9_.-]+:)?\d+$/;
const WORDS = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** A YAML scalar; JSON's strings are YAML's double-quoted ones. */
const scalar = (text: string) =>
  PLAIN.test(text) && !WORDS.test(text) ? text : JSON.stringify(text);
const list = (items: readonly string[]) => `[${items.map(scalar).join(', ')}]`;

/** The model names that a provider serves: its own list, else its preset's. */
export const modelsOf = ({ models, preset }: ProviderAnswer): readonly string[] =>
  models ?? (preset === undefined ? [] : (presetOf(preset)?.models ?? []));

function providerText(provider: ProviderAnswer): string[] {
  const { name, preset, protocol, baseUrl, key, models, place = {} } = provider;
  const known = preset === undefined ? undefined : presetOf(preset);
  const address = baseUrl ?? known?.endpoints[known.protocol]?.baseUrl;
  const lines = [`  ${name}:${address === undefined ? '' : `  # ${address}`}`];
  if (preset !== undefined) lines.push(`    preset: ${scalar(preset)}`);
  if (protocol !== undefined) lines.push(`    protocol: ${protocol}`);
  if (baseUrl !== undefined) lines.push(`    base_url: ${scalar(baseUrl)}`);
  for (const [option, value] of Object.entries(place))
    lines.push(`    ${option}: ${scalar(value)}`);
  const credentials = known?.platform === undefined ? undefined : CREDENTIALS[known.platform];
  if (credentials !== undefined) lines.push(`    # ${credentials}`);
  if (key !== undefined) lines.push(`    keys: [${JSON.stringify(key)}]`);
  else if (known !== undefined && known.variables.length > 0) {
    lines.push(
      `    # keys: ["\${${known.variables[0]}}"]   # found by itself once the variable is set`,
    );
  }
  if (models !== undefined) lines.push(`    models: ${list(models)}`);
  else if (known !== undefined) lines.push(`    # models: ${list(known.models)}`);
  return lines;
}

const CREDENTIALS = {
  vertex:
    'credentials_file: /path/to/service-account.json   # else GOOGLE_APPLICATION_CREDENTIALS, or the login of gcloud',
  azure:
    'client_id: …   # else keys, or the environment and the identity of the machine, as Azure reads them',
  bedrock: 'aws_profile: default   # else the environment and the files of the AWS tools',
} as const;

const CATEGORY_TEXTS: Readonly<Record<Category, string>> = {
  vision: 'an image in the last message',
  websearch: 'the client declared web search',
  longcontext: 'a long prompt',
  background: 'small side jobs of agents, such as titles',
  thinking: 'reasoning was asked for',
  coding: 'an agent that edits files',
  tools: 'the client brought tools',
  default: 'everything else',
};

function routeText({ providers, fallback, categories }: Answers): string[] {
  const lines: string[] = [];
  for (const [category, target] of Object.entries(categories)) {
    lines.push(
      `  - when: { category: ${category} }  # ${CATEGORY_TEXTS[category as Category]}`,
      `    to: [${scalar(target)}]`,
    );
  }
  for (const provider of providers) {
    const models = modelsOf(provider).filter((model) => model !== '*');
    if (models.length === 0) continue;
    lines.push(`  - when: { model: ${list(models)} }`, `    to: [${scalar(`${provider.name}/*`)}]`);
  }
  if (fallback !== undefined) {
    lines.push('  # Every other name, such as the default models of agents.');
    lines.push(`  - to: [${scalar(fallback)}]`);
  }
  return lines;
}

const NO_PROVIDERS = `# providers:
#   glm:
#     preset: glm                    # or protocol and base_url of your own
#     keys: ["\${ZHIPU_API_KEY}"]     # \${VARIABLE} and \${file:/path} are filled in
#     models: [glm-4.7]
`;

/** The file's text. It passes the program's own check. */
export function configText(answers: Answers): string {
  const { listen, providers, clientKey } = answers;
  const routes = routeText(answers);
  const parts = [
    '# Configuration of hopgate. "hopgate check" says what is wrong with it; a running server applies changes by itself.',
    '',
    '# The version of the file format. A newer hopgate reads older versions; "hopgate migrate" updates the file.',
    `version: ${CONFIG_VERSION}`,
    '',
    '# Address and port. 127.0.0.1 is reachable from this machine only.',
    `listen: ${PLAIN_LISTEN.test(listen) ? listen : JSON.stringify(listen)}`,
    '',
    '# Where models are. "hopgate doctor" tries each of them.',
    ...(providers.length === 0
      ? [NO_PROVIDERS.trimEnd()]
      : ['providers:', ...providers.flatMap(providerText)]),
    '',
    '# Who gets which request: the first rule that matches; several targets are tried in order.',
    '# "hopgate models --explain MODEL" shows what a rule does.',
    ...(routes.length === 0 ? ['# routes:', '#   - to: [glm/*]'] : ['routes:', ...routes]),
    '',
    '# Keys that clients must send, as a bearer token or x-api-key; none = no key is needed.',
    clientKey === undefined
      ? 'auth: { keys: [] }'
      : `auth: { keys: [${JSON.stringify(clientKey)}] }`,
    '',
    '# Recordings of requests and answers, credentials masked: off, errors or all.',
    'samples: { mode: errors }',
    '',
    '# The gateway can search the web for models that cannot.',
    '# server_tools:',
    '#   web_search: { inject: declared, engines: [{ type: searxng, base_url: "http://127.0.0.1:8888" }] }',
    '',
  ];
  return parts.join('\n');
}
