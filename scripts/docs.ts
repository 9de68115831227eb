/** Writes docs/configuration.md from the schema: `bun scripts/docs.ts`; with --check it only says whether it is up to date. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileSchema } from '../src/config/sections/index.ts';
import { PRESET_ALIASES, PRESETS } from '../src/config/vendors/presets.ts';

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly 'x-default'?: string;
  readonly const?: unknown;
  readonly anyOf?: readonly Node[];
  readonly items?: Node;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}

const cell = (text: string) => text.replaceAll('\n', ' ').replaceAll('|', '\\|');
const code = (text: string) => `\`${text}\``;

const namedValue = (node: Node): Node | undefined => Object.values(node.patternProperties ?? {})[0];

/** The type in words: `integer`, `"a" or "b"`, `list of strings`. */
function typeOf(node: Node): string {
  if (node.const !== undefined) return code(String(node.const));
  if (node.anyOf !== undefined) {
    // One of a kind or a list of them is said once, also where the kind is a choice of words.
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

/** Literals stay as they are: `a` or `b`. */
const plural = (type: string) =>
  /^(string|integer|number|mapping|boolean)$/.test(type) ? `${type}s` : type;

function defaultOf(node: Node, required: boolean): string {
  if (required) return '**needed**';
  if (node['x-default'] !== undefined) return cell(node['x-default']);
  const value = node.default;
  if (value === undefined) return 'what the vendor takes';
  if (typeof value !== 'object') return code(cell(JSON.stringify(value)));
  if (Array.isArray(value)) return value.length === 0 ? 'none' : code(cell(JSON.stringify(value)));
  return node.properties === undefined ? 'none' : 'as below';
}

interface Row {
  readonly key: string;
  readonly node: Node;
  readonly required: boolean;
}

/** Every key below a node, depth first, each with the way to it. */
function rowsOf(prefix: string, node: Node): readonly Row[] {
  const inner = inside(node);
  return [
    ...Object.entries(inner.node.properties ?? {}).flatMap(([name, child]): readonly Row[] => {
      const key = `${prefix}${inner.way}.${name}`;
      const required = inner.node.required?.includes(name) === true;
      return [{ key, node: child, required }, ...rowsOf(key, child)];
    }),
  ];
}

/** The mapping that stands behind lists, names and alternatives, and how one gets there. */
function inside(node: Node): { readonly node: Node; readonly way: string } {
  if (node.properties !== undefined) return { node, way: '' };
  if (node.type === 'array' && node.items !== undefined) {
    const item = inside(node.items);
    return { node: item.node, way: `[]${item.way}` };
  }
  const value = namedValue(node);
  if (value !== undefined) {
    const named = inside(value);
    return { node: named.node, way: `.NAME${named.way}` };
  }
  // One of several forms: the mapping among them is the one with keys to explain.
  const form = node.anyOf?.map(inside).find((one) => one.node.properties !== undefined);
  return form ?? { node: {}, way: '' };
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

function section(name: string, node: Node): readonly string[] {
  // The facts about single models are those about all of them: told once.
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
    return `| ${code(name)} | ${preset.protocol} | ${addresses.join(', ') || 'your own `base_url`'} | ${variables} |`;
  });
  const aliases = Object.entries(PRESET_ALIASES).map(
    ([other, name]) => `${code(other)} = ${code(name)}`,
  );
  return [
    '',
    '## Presets',
    '',
    'A provider whose name (or `preset`) is one of these needs no `base_url`, `profile` or `models`. Where a vendor has an address for several protocols, `protocol` picks one.',
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

The file is YAML. It is looked for in this order: \`--config FILE\`, \`$HOPGATE_CONFIG\`, \`$XDG_CONFIG_HOME/hopgate/hopgate.yaml\` (usually \`~/.config\`), \`/etc/hopgate/hopgate.yaml\`. The working directory is never looked at. Without a file, or with one that names no provider, hopgate uses the vendors whose keys stand in the environment and the model servers that answer on their usual ports; with none of those, the built-in demo model.

\`hopgate check\` names every problem with line and column. An unknown key is a problem, not something to pass over. A file of more than 1 MB, or with more than 100 levels, is refused. \`hopgate check --schema\` prints a JSON Schema for your editor.

Text values may refer to the environment: \`\${NAME}\`, \`\${NAME:-otherwise}\`, and \`\${file:/path}\` for the content of a file. Times are in seconds, fractions allowed. A running server takes changes of the file over by itself, at once or, where the file is a link into another folder, within seconds; \`listen\` and \`workers\` need a restart, and the log line \`config.reloaded\` says so.

In the tables, \`NAME\` stands for a name of your choice and \`[]\` for an item of a list.`;

/** The page as it must be. */
export function configurationPage(): string {
  const root = fileSchema as unknown as Node;
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
