/** Writes docs/configuration.md from the schema: `bun scripts/docs.ts`; with --check it only reports whether the page is up to date. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileSchema } from '../src/config/sections/index.ts';
import { PRESET_ALIASES, PRESETS } from '../src/config/vendors/presets.ts';

/** The parts of a JSON Schema that the page shows. */
interface SchemaNode {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly 'x-default'?: string;
  readonly const?: unknown;
  readonly anyOf?: readonly SchemaNode[];
  readonly items?: SchemaNode;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}

const cell = (text: string) => text.replaceAll('\n', ' ').replaceAll('|', '\\|');
const code = (text: string) => `\`${text}\``;

const namedValue = (node: SchemaNode): SchemaNode | undefined =>
  Object.values(node.patternProperties ?? {})[0];

/** The type in words: `integer`, `"a" or "b"`, `list of strings`. */
function typeOf(node: SchemaNode): string {
  if (node.const !== undefined) return code(String(node.const));
  if (node.anyOf !== undefined) {
    // A value or a list of such values is one type on the page, also where the value is a choice.
    const types = [...new Set(node.anyOf.map(typeOf))];
    const lists = types.filter((type) => types.some((one) => type === `list of ${plural(one)}`));
    const single = types.filter((type) => !lists.includes(type)).join(' or ');
    return lists.length === 0 ? single : `${single}, or a list of such`;
  }
  if (node.type === 'array') return `list of ${plural(typeOf(node.items ?? {}))}`;
  if (node.type === 'object') {
    const value = namedValue(node);
    return value === undefined ? 'mapping' : `mapping of names to ${plural(typeOf(value))}`;
  }
  if (node.type === undefined) return 'anything';
  return node.type;
}

/** Literals have no plural: `a` or `b`. */
const plural = (type: string) =>
  /^(string|integer|number|mapping|boolean)$/.test(type) ? `${type}s` : type;

function defaultOf(node: SchemaNode, required: boolean): string {
  if (required) return '**needed**';
  if (node['x-default'] !== undefined) return cell(node['x-default']);
  const value = node.default;
  if (value === undefined) return 'not set';
  if (typeof value !== 'object') return code(cell(JSON.stringify(value)));
  if (Array.isArray(value)) return value.length === 0 ? 'none' : code(cell(JSON.stringify(value)));
  return node.properties === undefined ? 'none' : 'as below';
}

interface Row {
  readonly key: string;
  readonly node: SchemaNode;
  readonly required: boolean;
}

/** Every key below a node, depth first, each with its full name. */
function rowsOf(prefix: string, node: SchemaNode): readonly Row[] {
  const inner = inside(node);
  return [
    ...Object.entries(inner.node.properties ?? {}).flatMap(([name, child]): readonly Row[] => {
      const key = `${prefix}${inner.keys}.${name}`;
      const required = inner.node.required?.includes(name) === true;
      return [{ key, node: child, required }, ...rowsOf(key, child)];
    }),
  ];
}

/** The mapping inside lists, named entries and alternatives, and the part of the key that leads to it. */
function inside(node: SchemaNode): { readonly node: SchemaNode; readonly keys: string } {
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

function table(rows: readonly Row[]): readonly string[] {
  if (rows.length === 0) return [];
  return [
    '',
    '| key | type | default | meaning |',
    '|---|---|---|---|',
    ...rows.map(
      ({ key, node, required }) =>
        `| ${code(key)} | ${cell(typeOf(node))} | ${defaultOf(node, required)} | ${cell(node.description ?? '')} |`,
    ),
  ];
}

function section(name: string, node: SchemaNode): readonly string[] {
  // The facts about single models are the same as about all models, and listed once.
  const rows = rowsOf(name, node).filter(
    ({ key }) => !key.startsWith('profiles.NAME.models.NAME.'),
  );
  const own = `Type: ${typeOf(node)}. Default: ${defaultOf(node, false)}.`;
  return ['', `## ${name}`, '', node.description ?? '', '', own, ...table(rows)];
}

function presets(): readonly string[] {
  const rows = Object.entries(PRESETS).map(([name, preset]) => {
    const addresses = Object.entries(preset.endpoints).map(
      ([protocol, endpoint]) => `${protocol}: ${endpoint.baseUrl}`,
    );
    const variables = preset.variables.map(code).join(', ') || 'no key';
    const address =
      preset.platform === undefined
        ? addresses.join(', ') || 'your own `base_url`'
        : `that of the [platform](platforms.md) \`${preset.platform}\``;
    return `| ${code(name)} | ${preset.protocol} | ${address} | ${variables} |`;
  });
  const aliases = Object.entries(PRESET_ALIASES).map(
    ([other, name]) => `${code(other)} = ${code(name)}`,
  );
  return [
    '',
    '## Presets',
    '',
    'A provider whose name (or `preset`) is one of these needs no `base_url`, `profile` or `models`. Where a vendor has addresses for several protocols, `protocol` selects one.',
    '',
    '| preset | protocol | addresses | key is taken from |',
    '|---|---|---|---|',
    ...rows,
    '',
    `Other names: ${aliases.join(', ')}.`,
  ];
}

const HEAD = `# Configuration

<!-- Written by scripts/docs.ts from the schema; changes here are lost. -->

The file is YAML. The first of these files is used: \`--config FILE\`, \`$HOPGATE_CONFIG\`, \`$XDG_CONFIG_HOME/hopgate/hopgate.yaml\` (usually \`~/.config\`), \`/etc/hopgate/hopgate.yaml\`. A file in the working directory is ignored. Without a file, or with one that names no provider, hopgate uses the vendors whose keys are in the environment and the model servers that answer on their usual ports; if there are none, the built-in demo model.

\`hopgate check\` names every problem with line and column. An unknown key is a problem and is never ignored. A file of more than 1 MB, or with more than 100 levels, is refused. \`hopgate check --schema\` prints a JSON Schema for your editor.

Text values may refer to the environment: \`\${NAME}\`, \`\${NAME:-default}\`, and \`\${file:/path}\` for the content of a file. Times are in seconds, fractions allowed. A running server loads a changed file by itself, at once or, where the file is a link into another folder, within seconds; the address in \`listen\` and \`workers\` need a restart, and the log line \`config.reloaded\` says so.

In the tables, \`NAME\` stands for a name of your choice and \`[]\` for an item of a list.`;

/** The text that the page must have. */
export function configurationPage(): string {
  const root = fileSchema as unknown as SchemaNode;
  const sections = Object.entries(root.properties ?? {}).flatMap(([name, node]) =>
    section(name, node),
  );
  return `${[HEAD, ...sections, ...presets()].join('\n')}\n`;
}

export const CONFIGURATION_PAGE = join(import.meta.dir, '../docs/configuration.md');

if (import.meta.main) {
  const wanted = configurationPage();
  if (process.argv.includes('--check')) {
    const same = readFileSync(CONFIGURATION_PAGE, 'utf8') === wanted;
    console.log(
      same
        ? 'docs/configuration.md is up to date'
        : 'docs/configuration.md is out of date: run bun scripts/docs.ts',
    );
    process.exit(same ? 0 : 1);
  }
  writeFileSync(CONFIGURATION_PAGE, wanted);
}
