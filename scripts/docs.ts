/** Writes docs/configuration.md and its Chinese counterpart from the schema: `bun scripts/docs.ts`; with --check it only reports whether the pages are up to date. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Schema } from '../src/config/file/schema.ts';
import { fileSchema } from '../src/config/sections/index.ts';
import { PRESET_ALIASES, PRESETS } from '../src/vendors/index.ts';
import { COMMENTS, DEFAULTS, HEAD as HEAD_CHINESE, MEANINGS } from './docs-chinese.ts';

const cell = (text: string) => text.replaceAll('\n', ' ').replaceAll('|', '\\|');
const code = (text: string) => `\`${text}\``;

const namedValue = (node: Schema): Schema | undefined =>
  Object.values(node.patternProperties ?? {})[0];

/** What a page says in its language. */
interface Words {
  readonly head: string;
  readonly columns: string;
  /** The line below a section's description. */
  readonly own: (type: string, byDefault: string) => string;
  /** A type of JSON Schema, `mapping` or `anything`. */
  readonly type: (name: string) => string;
  /** One of several types. */
  readonly or: (types: readonly string[]) => string;
  readonly listOf: (type: string) => string;
  readonly orList: (type: string) => string;
  readonly namesTo: (type: string) => string;
  readonly needed: string;
  readonly notSet: string;
  readonly none: string;
  readonly below: string;
  readonly meaning: (text: string) => string;
  readonly byDefault: (text: string) => string;
  readonly comment: (text: string) => string;
  readonly presets: readonly [heading: string, text: string, columns: string];
  readonly ownAddress: string;
  readonly platformAddress: (platform: string) => string;
  readonly noKey: string;
  readonly comma: string;
  readonly otherNames: (names: string) => string;
}

/** The type in words: `integer`, `"a" or "b"`, `list of strings`. */
function typeOf(node: Schema, words: Words): string {
  if (node.const !== undefined) return code(String(node.const));
  if (node.anyOf !== undefined) {
    // A value or a list of such values is one type on the page, also where the value is a choice.
    const types = [...new Set(node.anyOf.map((one) => typeOf(one, words)))];
    const lists = types.filter((type) => types.some((one) => type === words.listOf(one)));
    const single = words.or(types.filter((type) => !lists.includes(type)));
    return lists.length === 0 ? single : words.orList(single);
  }
  if (node.type === 'array') return words.listOf(typeOf(node.items ?? {}, words));
  if (node.type === 'object') {
    const value = namedValue(node);
    return value === undefined ? words.type('mapping') : words.namesTo(typeOf(value, words));
  }
  return words.type(node.type ?? 'anything');
}

function defaultOf(node: Schema, required: boolean, words: Words): string {
  if (required) return words.needed;
  if (node['x-default'] !== undefined) return cell(words.byDefault(node['x-default']));
  const value = node.default;
  if (value === undefined) return words.notSet;
  if (typeof value !== 'object') return code(cell(JSON.stringify(value)));
  if (Array.isArray(value))
    return value.length === 0 ? words.none : code(cell(JSON.stringify(value)));
  return node.properties === undefined ? words.none : words.below;
}

export interface ConfigRow {
  readonly key: string;
  readonly node: Schema;
  readonly required: boolean;
}

/** Every key below a node, depth first, each with its full name. */
function rowsOf(prefix: string, node: Schema): readonly ConfigRow[] {
  const inner = inside(node);
  return [
    ...Object.entries(inner.node.properties ?? {}).flatMap(
      ([name, child]): readonly ConfigRow[] => {
        const key = `${prefix}${inner.keys}.${name}`;
        const required = inner.node.required?.includes(name) === true;
        return [{ key, node: child, required }, ...rowsOf(key, child)];
      },
    ),
  ];
}

/** The mapping inside lists, named entries and alternatives, and the part of the key that leads to it. */
function inside(node: Schema): { readonly node: Schema; readonly keys: string } {
  if (node.properties !== undefined) return { node, keys: '' };
  if (node.type === 'array' && node.items !== undefined) {
    const item = inside(node.items);
    return { node: item.node, keys: `[]${item.keys}` };
  }
  const value = namedValue(node);
  if (value !== undefined) {
    const named = inside(value);
    return { node: named.node, keys: `.NAME${named.keys}` };
  }
  // Of several forms, the mapping is the one whose keys need explaining.
  const form = node.anyOf?.map(inside).find((one) => one.node.properties !== undefined);
  return form ?? { node: {}, keys: '' };
}

function table(rows: readonly ConfigRow[], words: Words): readonly string[] {
  if (rows.length === 0) return [];
  return [
    '',
    words.columns,
    '|---|---|---|---|',
    ...rows.map(
      ({ key, node, required }) =>
        `| ${code(key)} | ${cell(typeOf(node, words))} | ${defaultOf(node, required, words)} | ${cell(words.meaning(node.description ?? ''))} |`,
    ),
  ];
}

const EXAMPLES = join(import.meta.dir, 'config-examples');

/** The examples of a section: `NAME.yaml`, `NAME-….yaml`; complete files, shown as they are. */
const examplesOf = (section: string): readonly string[] =>
  readdirSync(EXAMPLES)
    .filter((file) => file === `${section}.yaml` || file.startsWith(`${section}-`))
    .sort()
    .map((file) => readFileSync(join(EXAMPLES, file), 'utf8').trimEnd());

/** Every key of the configuration that the page shows, with its section's examples. */
export const configSections = (): readonly {
  readonly name: string;
  readonly rows: readonly ConfigRow[];
  readonly examples: readonly string[];
}[] =>
  Object.entries(fileSchema.properties ?? {}).map(([name, node]) => ({
    name,
    rows: shownRows(name, node),
    examples: examplesOf(name),
  }));

// The facts about single models are the same as about all models, and listed once.
const shownRows = (name: string, node: Schema): readonly ConfigRow[] =>
  rowsOf(name, node).filter(({ key }) => !key.startsWith('profiles.NAME.models.NAME.'));

function section(name: string, node: Schema, words: Words): readonly string[] {
  const rows = shownRows(name, node);
  const examples = examplesOf(name)
    .map((yaml) => yaml.replace(/# (.*)$/gm, (_, comment: string) => `# ${words.comment(comment)}`))
    .flatMap((yaml) => ['', '```yaml', yaml, '```']);
  const own = words.own(typeOf(node, words), defaultOf(node, false, words));
  const meaning = words.meaning(node.description ?? '');
  return ['', `## ${name}`, '', meaning, '', own, ...examples, ...table(rows, words)];
}

function presets(words: Words): readonly string[] {
  const rows = Object.entries(PRESETS).map(([name, preset]) => {
    const addresses = Object.entries(preset.endpoints).map(
      ([protocol, endpoint]) => `${protocol}: ${endpoint.baseUrl}`,
    );
    const variables = preset.variables.map(code).join(words.comma) || words.noKey;
    const address =
      preset.platform === undefined
        ? addresses.join(words.comma) || words.ownAddress
        : words.platformAddress(preset.platform);
    return `| ${code(name)} | ${preset.protocol} | ${address} | ${variables} |`;
  });
  const aliases = Object.entries(PRESET_ALIASES).map(
    ([other, name]) => `${code(other)} = ${code(name)}`,
  );
  const [heading, text, columns] = words.presets;
  return [
    '',
    `## ${heading}`,
    '',
    text,
    '',
    columns,
    '|---|---|---|---|',
    ...rows,
    '',
    words.otherNames(aliases.join(words.comma)),
  ];
}

const HEAD = `# Configuration

<!-- Written by scripts/docs.ts from the schema; changes here are lost. -->

The file is YAML. The first of these files is used: \`--config FILE\`, \`$HOPGATE_CONFIG\`, \`$XDG_CONFIG_HOME/hopgate/hopgate.yaml\` (usually \`~/.config\`), \`/etc/hopgate/hopgate.yaml\`. A file in the working directory is ignored. Without a file, or if it names no provider, hopgate uses the vendors whose keys are in the environment and the model servers that answer on their usual ports. If there are none, it uses the built-in demo model.

\`hopgate check\` names every problem with line and column. An unknown key is reported as a problem, never ignored. A file of more than 1 MB, or with more than 100 levels, is refused. \`hopgate check --schema\` prints a JSON Schema for your editor.

Text values may refer to the environment: \`\${NAME}\`, \`\${NAME:-default}\`, and \`\${file:/path}\` for the content of a file. Times are in seconds, fractions allowed. A running gateway loads a changed file by itself, at once or, if the file is a link into another folder, within seconds. A change of the address in \`listen\` or of \`workers\` needs a restart; the log line \`config.reloaded\` says so.

Each section begins with an example that shows all of its keys; write only those that differ from their defaults. In the tables, \`NAME\` stands for a name of your choice and \`[]\` for an item of a list.`;

/** Literals have no plural: `a` or `b`. */
const plural = (type: string) =>
  /^(string|integer|number|mapping|boolean)$/.test(type) ? `${type}s` : type;

const same = (text: string) => text;

const ENGLISH: Words = {
  head: HEAD,
  columns: '| key | type | default | meaning |',
  own: (type, byDefault) => `Type: ${type}. Default: ${byDefault}.`,
  type: same,
  or: (types) => types.join(' or '),
  listOf: (type) => `list of ${plural(type)}`,
  orList: (type) => `${type}, or a list of such`,
  namesTo: (type) => `mapping of names to ${plural(type)}`,
  needed: '**needed**',
  notSet: 'not set',
  none: 'none',
  below: 'as below',
  meaning: same,
  byDefault: same,
  comment: same,
  presets: [
    'Presets',
    'A provider whose name (or `preset`) is one of these needs no `base_url`, `profile` or `models`. Where a vendor has addresses for several protocols, `protocol` selects one.',
    '| preset | protocol | addresses | key is taken from |',
  ],
  ownAddress: 'your own `base_url`',
  platformAddress: (platform) => `that of the [platform](platforms.md) ${code(platform)}`,
  noKey: 'no key',
  comma: ', ',
  otherNames: (names) => `Other names: ${names}.`,
};

const TYPES_CHINESE: Readonly<Record<string, string>> = {
  string: '字符串',
  integer: '整数',
  number: '数字',
  boolean: '布尔值',
  mapping: '映射',
  anything: '任意',
};

/** Words of the Chinese page. A text without a translation is an error. */
function chinese(lookUp: (table: Readonly<Record<string, string>>, text: string) => string): Words {
  const of = (table: Readonly<Record<string, string>>) => (text: string) =>
    text === '' ? '' : lookUp(table, text);
  return {
    head: HEAD_CHINESE,
    columns: '| 键 | 类型 | 默认值 | 含义 |',
    own: (type, byDefault) => `类型：${type}。默认值：${byDefault}。`,
    type: of(TYPES_CHINESE),
    // Spaces only beside code.
    or: (types) =>
      [types.slice(0, -1).join('、'), types.at(-1)]
        .filter((part) => part !== '')
        .join(' 或 ')
        .replace(/(?<=\p{Script=Han}) 或 (?=\p{Script=Han})/gu, '或'),
    listOf: (type) => `列表（${type}）`,
    orList: (type) => `${type}，或由其组成的列表`,
    namesTo: (type) => `名称到值的映射（${type}）`,
    needed: '**必填**',
    notSet: '未设置',
    none: '无',
    below: '见下表',
    meaning: of(MEANINGS),
    byDefault: of(DEFAULTS),
    comment: of(COMMENTS),
    presets: [
      '预设',
      '提供方的名称（或 `preset`）在下表中时，无需写 `base_url`、`profile` 和 `models`。厂商为多种协议提供地址时，用 `protocol` 选择其中一种。',
      '| 预设 | 协议 | 地址 | 密钥取自 |',
    ],
    ownAddress: '自己写的 `base_url`',
    platformAddress: (platform) => `[云平台](platforms.zh-CN.md) ${code(platform)} 的地址`,
    noKey: '无需密钥',
    comma: '、',
    otherNames: (names) => `其他名称：${names}。`,
  };
}

function pageIn(words: Words): string {
  const root = fileSchema;
  const sections = Object.entries(root.properties ?? {}).flatMap(([name, node]) =>
    section(name, node, words),
  );
  return `${[words.head, ...sections, ...presets(words)].join('\n')}\n`;
}

/** The text that the English page must have. */
export const configurationPage = (): string => pageIn(ENGLISH);

/** The text that the Chinese page must have. Throws an Error that names each text that is missing or not used. */
export function chineseConfigurationPage(): string {
  const tables = { TYPES_CHINESE, MEANINGS, DEFAULTS, COMMENTS };
  const unused = new Map(
    Object.entries(tables).map(([name, table]) => [
      table,
      { name, texts: new Set(Object.keys(table)) },
    ]),
  );
  const missing = new Set<string>();
  const page = pageIn(
    chinese((table, text) => {
      unused.get(table)?.texts.delete(text);
      if (table[text] === undefined) missing.add(text);
      return table[text] ?? text;
    }),
  );
  const problems = [
    ...[...missing].map((text) => `has no translation: ${text}`),
    ...[...unused.values()].flatMap(({ name, texts }) =>
      [...texts].map((text) => `is not used in ${name}: ${text}`),
    ),
  ];
  if (problems.length > 0) throw new Error(`scripts/docs-chinese.ts\n${problems.join('\n')}`);
  return page;
}

const DOCS = join(import.meta.dir, '../docs');

if (import.meta.main) {
  const pages = {
    'configuration.md': configurationPage(),
    'configuration.zh-CN.md': chineseConfigurationPage(),
  };
  const changed = Object.entries(pages).filter(
    ([file, wanted]) =>
      !existsSync(join(DOCS, file)) || readFileSync(join(DOCS, file), 'utf8') !== wanted,
  );
  if (process.argv.includes('--check')) {
    for (const [file] of changed) {
      console.log(`docs/${file} is out of date: run bun scripts/docs.ts`);
    }
    process.exit(changed.length === 0 ? 0 : 1);
  }
  for (const [file, wanted] of changed) writeFileSync(join(DOCS, file), wanted);
}
