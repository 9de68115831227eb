/** Writes docs/configuration.md and its Chinese counterpart from the schema: `bun scripts/docs.ts`; with --check it only reports whether the pages are up to date. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Schema } from '../src/config/file/schema.ts';
import { fileSchema } from '../src/config/sections/index.ts';
import { PRESET_ALIASES, PRESETS } from '../src/vendors/index.ts';

const cell = (text: string) => text.replaceAll('\n', ' ').replaceAll('|', '\\|');
const code = (text: string) => `\`${text}\``;

const namedValue = (node: Schema): Schema | undefined =>
  Object.values(node.patternProperties ?? {})[0];

interface KeyTexts {
  readonly meaning: string;
  readonly otherwise?: string | undefined;
}

/** What a page says in its language. */
type Words = typeof ENGLISH;

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

function defaultOf(
  { key, node, required }: ConfigRow,
  otherwise: string | undefined,
  words: Words,
): string {
  if (required) return words.needed;
  if (otherwise !== undefined) return cell(otherwise);
  const value = node.default;
  if (TOLD_ELSEWHERE[0]!.test(`${key}.`)) return words.inherited;
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

const textsOf = ({ key, node, required }: ConfigRow, words: Words): KeyTexts =>
  words.of(key, {
    meaning: node.description ?? '',
    otherwise: required ? undefined : node['x-default'],
  });

const mostFrequent = (texts: readonly string[]): string =>
  [...Map.groupBy(texts, (text) => text)].toSorted(([, a], [, b]) => b.length - a.length)[0]![0];

function table(rows: readonly ConfigRow[], words: Words): readonly string[] {
  if (rows.length === 0) return [];
  const lines = rows.map((row) => {
    const { meaning, otherwise } = textsOf(row, words);
    const type = cell(typeOf(row.node, words));
    return [code(row.key), type, defaultOf(row, otherwise, words), cell(meaning)];
  });
  // Where most rows share a default, it is said once, the others with their meaning, and the column goes.
  const usual = mostFrequent(lines.map(([, , byDefault]) => byDefault!));
  const shared = lines.filter(([, , byDefault]) => byDefault === usual).length;
  const unset = shared >= 6 && shared * 4 > lines.length * 3;
  const shown = unset
    ? lines.map(([key, type, byDefault, meaning]) => {
        if (byDefault === words.needed) return [key, `${type}, ${words.needed}`, meaning];
        return [
          key,
          type,
          byDefault === usual ? meaning : `${meaning} ${words.byDefault(byDefault!)}`,
        ];
      })
    : lines;
  return [
    ...(unset && usual !== words.notSet ? ['', words.usually(usual)] : []),
    '',
    unset ? words.columnsUnset : words.columns,
    `|${'---|'.repeat(unset ? 3 : 4)}`,
    ...shown.map((cells) => `| ${cells.join(' | ')} |`),
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
    rows: ownRows(name, node),
    examples: [
      ...examplesOf(name),
      ...examplesOf('advanced').filter((yaml) => new RegExp(`^${name}:`, 'm').test(yaml)),
    ],
  }));

// The facts about single models are the same as about all models.
const ownRows = (name: string, node: Schema): readonly ConfigRow[] =>
  rowsOf(name, node).filter(({ key }) => !key.startsWith('profiles.NAME.models.NAME.'));

/** Keys that mean the same as others of the page; the text of the key above them says where those are. */
const TOLD_ELSEWHERE = [
  /^providers\.NAME\.(?:timeouts|retry)\./,
  /^providers\.NAME\.prices\.NAME\.tiers\[\]\.(?!above|service_tier|time$)/,
  /^auth\.keys\[\]\.budgets\[\]\.(?!name)/,
  /^profiles\.NAME\.errorWords\.NAME\./,
  /^auth\.jwt\.(?:labels|models|tools|routes|spaces|expires|limits|budgets)\b/,
];

/** Sections that few need stand at the end, and so do these keys of others. */
const ADVANCED = [
  ...['profiles', 'categories', 'model_list', 'answer_model', 'limits', 'keep_alive', 'workers'],
  ...['validate', 'version'],
];
const ADVANCED_KEYS = /^routes\[\]\.(?:when\.(?:category|time)|to\.weight)\b|^retry\.hedge$/;
const CHAT_APPS = ['memory', 'conversation'];

const shownRows = (name: string, node: Schema): readonly ConfigRow[] =>
  ownRows(name, node).filter(({ key }) => !TOLD_ELSEWHERE.some((one) => one.test(key)));

const fenced = (section: string, words: Words): readonly string[] =>
  examplesOf(section)
    .map((yaml) =>
      yaml.replace(/# (.*) ‖ (.*)$/gm, (_, ...texts: string[]) => `# ${texts[words.comment]}`),
    )
    .flatMap((yaml) => ['', '```yaml', yaml, '```']);

function section(name: string, node: Schema, level: string, words: Words): readonly string[] {
  const rows = shownRows(name, node).filter(({ key }) => !ADVANCED_KEYS.test(key));
  const row = { key: name, node, required: false };
  const { meaning, otherwise } = textsOf(row, words);
  // The table describes a mapping.
  const own =
    node.properties === undefined
      ? ['', words.own(typeOf(node, words), defaultOf(row, otherwise, words))]
      : [];
  const examples = fenced(name, words);
  return ['', `${level} ${name}`, '', meaning, ...own, ...examples, ...table(rows, words)];
}

function group(
  [heading, text]: readonly [heading: string, text: string],
  sections: readonly string[],
): readonly string[] {
  return ['', `## ${heading}`, '', text, ...sections];
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
        : `${preset.protocol}: ${words.platformAddress(preset.platform)}`;
    return `| ${code(name)} | ${address} | ${variables} |`;
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
    '|---|---|---|',
    ...rows,
    '',
    words.otherNames(aliases.join(words.comma)),
  ];
}

const TEXTS = join(import.meta.dir, 'config-texts');
const head = (file: string) => readFileSync(join(TEXTS, file), 'utf8').trimEnd();

/** Literals have no plural: `a` or `b`. */
const plural = (type: string) =>
  /^(string|integer|number|mapping|boolean)$/.test(type) ? `${type}s` : type;

const ENGLISH = {
  head: head('head.md'),
  columns: '| key | type | default | meaning |',
  columnsUnset: '| key | type | meaning |',
  /** The line below a section's description. */
  own: (type: string, byDefault: string) => `Type: ${type}. Default: ${byDefault}.`,
  /** A type of JSON Schema, `mapping` or `anything`. */
  type: (name: string) => name,
  /** One of several types. */
  or: (types: readonly string[]) =>
    [types.slice(0, -1).join(', '), types.at(-1)].filter((part) => part !== '').join(' or '),
  listOf: (type: string) => `list of ${plural(type)}`,
  orList: (type: string) => `${type}, or a list of such`,
  namesTo: (type: string) => `mapping of names to ${plural(type)}`,
  needed: '**needed**',
  notSet: 'not set',
  none: 'none',
  below: 'as below',
  inherited: 'that of the top level',
  byDefault: (text: string) => `Default: ${text}.`,
  usually: (text: string) => `Default: ${text}, unless stated.`,
  /** What a key means, and in words what happens when it is left out; both are written in English in the schema. */
  of: (_key: string, english: KeyTexts) => english,
  /** Which part of a comment of an example: `English ‖ Chinese`. */
  comment: 0,
  presets: [
    'Presets',
    'A provider whose name (or `preset`) is one of these needs no `base_url`, `profile` or `models`. The first protocol is the default; `protocol` selects another.',
    '| preset | addresses | key is taken from |',
  ] as [heading: string, text: string, columns: string],
  chatApps: [
    'Chat apps',
    'Only for apps whose characters talk and remember: [Chat apps](chat-apps.md), [Memory](memory.md).',
  ] as [heading: string, text: string],
  advanced: ['Advanced', 'Settings that few installations need.'] as [
    heading: string,
    text: string,
  ],
  advancedKeys: 'Categories, time windows, weights, hedging',
  ownAddress: 'your own `base_url`',
  platformAddress: (platform: string) => `[platform](platforms.md) ${code(platform)}`,
  noKey: 'no key',
  comma: ', ',
  otherNames: (names: string) => `Other names: ${names}.`,
};

const TYPES_CHINESE: Readonly<Record<string, string>> = {
  string: '字符串',
  integer: '整数',
  number: '数字',
  boolean: '布尔值',
  mapping: '映射',
  anything: '任意',
};

/** Words of the Chinese page, with the texts of `config-texts/zh-CN.yaml`. */
function chinese(of: Words['of']): Words {
  return {
    head: head('head.zh-CN.md'),
    columns: '| 键 | 类型 | 默认值 | 含义 |',
    columnsUnset: '| 键 | 类型 | 含义 |',
    own: (type, byDefault) => `类型：${type}。默认值：${byDefault}。`,
    type: (name) => TYPES_CHINESE[name] ?? name,
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
    inherited: '同顶层设置',
    byDefault: (text) => `默认值：${text}。`,
    usually: (text) => `默认值为${text}，另有说明的除外。`,
    of,
    comment: 1,
    presets: [
      '预设',
      '提供方的名称（或 `preset`）在下表中时，无需写 `base_url`、`profile` 和 `models`。默认使用第一种协议，用 `protocol` 选择另一种。',
      '| 预设 | 地址 | 密钥取自 |',
    ],
    chatApps: [
      '聊天应用',
      '仅用于角色能对话、有记忆的应用：[聊天应用](chat-apps.zh-CN.md)、[记忆](memory.zh-CN.md)。',
    ],
    advanced: ['高级设置', '少数安装才需要的设置。'],
    advancedKeys: '类别、时间段、权重、对冲请求',
    ownAddress: '自己写的 `base_url`',
    platformAddress: (platform) => `[云平台](platforms.zh-CN.md) ${code(platform)}`,
    noKey: '无需密钥',
    comma: '、',
    otherNames: (names) => `其他名称：${names}。`,
  };
}

function pageIn(words: Words): string {
  const all = Object.entries(fileSchema.properties ?? {});
  const later = [...CHAT_APPS, ...ADVANCED];
  const byName: ReadonlyMap<string, Schema> = new Map(all);
  const within = (names: readonly string[]) =>
    names.flatMap((name) => section(name, byName.get(name)!, '###', words));
  const keys = all
    .flatMap(([name, node]) => shownRows(name, node))
    .filter(({ key }) => ADVANCED_KEYS.test(key));
  const lines = [
    words.head,
    ...all
      .filter(([name]) => !later.includes(name))
      .flatMap(([name, node]) => section(name, node, '##', words)),
    ...presets(words),
    ...group(words.chatApps, within(CHAT_APPS)),
    ...group(words.advanced, [
      '',
      `### ${words.advancedKeys}`,
      ...fenced('advanced', words),
      ...table(keys, words),
      ...within(ADVANCED),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

/** The text that the English page must have. */
export const configurationPage = (): string => pageIn(ENGLISH);

/** The text that the Chinese page must have. Throws an Error that names each key whose text is missing, and each text that is not used. */
export function chineseConfigurationPage(): string {
  const file = join(TEXTS, 'zh-CN.yaml');
  const texts = parse(readFileSync(file, 'utf8')) as Readonly<Record<string, string>>;
  /** By entry: the English text that it translates. */
  const used = new Map<string, string>();
  const problems: string[] = [];
  const page = pageIn(
    chinese((key, english) => {
      const steps = key.split('.');
      const entry = steps.map((_, at) => steps.slice(at).join('.')).find((one) => one in texts);
      const source = Object.values(english).join(' ‖ ');
      if (entry === undefined) {
        problems.push(`${key} has no text: ${source}`);
        return english;
      }
      if ((used.get(entry) ?? source) !== source) problems.push(`${key} needs its own: ${source}`);
      used.set(entry, source);
      const [meaning = '', otherwise] = texts[entry]!.split(' ‖ ');
      if ((otherwise === undefined) !== (english.otherwise === undefined)) {
        problems.push(
          `${entry} must say after ‖ what happens when the key is left out, where the schema does`,
        );
      }
      return { meaning, otherwise };
    }),
  );
  for (const entry of Object.keys(texts))
    if (!used.has(entry)) problems.push(`${entry} is not used`);
  if (problems.length > 0) throw new Error(`${file}\n${problems.join('\n')}`);
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
