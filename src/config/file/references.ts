/** `${VAR}`, `${VAR:-default}` and `${file:/path}` inside the file's texts. */

import { dirname, isAbsolute, join } from 'node:path';
import { readNamedFile } from '../../lib/text/named-file.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { type Environment, expandHome } from '../environment.ts';
import type { Issue, Path } from './problem.ts';

/** Stands for a key that was dropped, so that its neighbours keep their places in a list. */
export const DROPPED: unique symbol = Symbol('dropped');

/** A value with its references replaced. */
export interface Referenced {
  readonly value: unknown;
  /** Paths (as JSON) of texts that came, wholly or in part, from a reference. */
  readonly from: ReadonlySet<string>;
  /** By path (as JSON): the reference, for texts that are one reference and nothing else. */
  readonly origins: ReadonlyMap<string, string>;
  readonly problems: readonly Issue[];
  readonly warnings: readonly Issue[];
}

// `$${` is a literal `${`.
const REFERENCE = /\$\$\{|\$\{([^}]*)\}/g;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Replaces every reference in every text. A variable that is not set is a problem, except among the
 * keys of a provider or a search engine: there that key is dropped with a warning, since a file may
 * name more keys than this machine has. It is a problem among `auth.keys`: without its
 * only key, a gateway would accept every client.
 * @param file where the text stands, for relative `${file:…}` references
 */
export function resolveReferences(
  value: unknown,
  environment: Environment,
  file: string,
): Referenced {
  const from = new Set<string>();
  const origins = new Map<string, string>();
  const problems: Issue[] = [];
  const warnings: Issue[] = [];

  const readText = (text: string, path: Path): string | typeof DROPPED => {
    const bare = bareVariable(text);
    if (bare !== undefined && isCredential(path)) {
      problems.push({ path, message: 'is sent unchanged', suggestion: `\${${bare}}` });
      return text;
    }
    if (!text.includes('${')) return text;
    // The pattern would search for each missing end up to the end of the text.
    if (text.length > LONG_TEXT && text.lastIndexOf('${') > text.lastIndexOf('}')) {
      problems.push({ path, message: UNCLOSED });
      return text;
    }
    if (text.replace(REFERENCE, '').includes('${')) {
      problems.push({ path, message: UNCLOSED });
      return text;
    }
    let missing: string | undefined;
    const out = text.replace(REFERENCE, (whole, inner: string | undefined) => {
      if (inner === undefined) return '${';
      const found = lookUp(inner, environment, file);
      if ('value' in found) {
        from.add(JSON.stringify(path));
        // A default may be a key itself, so it is left out.
        if (whole === text) origins.set(JSON.stringify(path), whole.replace(/:-[^}]*/, ''));
        return found.value;
      }
      missing ??= found.missing;
      return whole;
    });
    if (missing === undefined) {
      if (out.trim() !== '' || !isDroppable(path)) return out;
      missing = 'is empty';
    }
    if (!isDroppable(path)) {
      problems.push({ path, message: missing });
      return DROPPED;
    }
    warnings.push({ path, message: `${missing}; this key is left out`, environment: true });
    return DROPPED;
  };

  const walk = (node: unknown, path: Path): unknown => {
    if (typeof node === 'string') return readText(node, path);
    if (Array.isArray(node)) return node.map((item, index) => walk(item, [...path, index]));
    if (typeof node !== 'object' || node === null) return node;
    return Object.fromEntries(
      Object.entries(node).map(([key, child]) => [key, walk(child, [...path, key])]),
    );
  };
  return { value: walk(value, []), from, origins, problems, warnings };
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
const UNCLOSED = 'has a "${" without its "}" (a "${" of its own is written "$${")';

/** Characters above which an unclosed reference is found without the pattern. */
const LONG_TEXT = 10_000;

/** Variables as shells, LiteLLM, JavaScript, opencode, Windows and templates write them. */
const BARE =
  /^(?:Bearer )?(?:\$(?:env:)?(\w+)|os\.environ\/(\w+)|process\.env\.(\w+)|\{env:(\w+)\}|%(\w+)%|\{\{ ?(?:env\.)?(\w+) ?\}\})$/;

/** The name of a variable that stands alone, in the form of another program. */
const bareVariable = (text: string): string | undefined =>
  BARE.exec(text)
    ?.slice(1)
    .find((name) => name !== undefined && NAME.test(name));

/** Whether a path holds a credential, where such a name is certainly a mistake. */
const isCredential = (path: Path): boolean =>
  path.some((step) => ['keys', 'key', 'admin_keys', 'headers', 'seal'].includes(String(step)));

type Lookup = { readonly value: string } | { readonly missing: string };

function lookUp(inner: string, environment: Environment, file: string): Lookup {
  if (inner.startsWith('file:')) return readSecretFile(inner.slice(5), environment, file);
  if (inner.includes('${')) return { missing: 'a reference cannot hold another one' };
  const cut = inner.indexOf(':-');
  const name = (cut < 0 ? inner : inner.slice(0, cut)).trim();
  if (!NAME.test(name)) {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
    return { missing: '${…} must hold a variable name, VAR:-default or file:/path' };
  }
  const value = environment.variable(name) ?? (cut < 0 ? undefined : inner.slice(cut + 2));
  return value === undefined
    ? { missing: `the environment variable ${name} is not set` }
    : { value };
}

/** Bytes; the longest credentials are those of Google's accounts, with a few thousand. */
const MAX_SECRET_BYTES = 1024 * 1024;

function readSecretFile(path: string, environment: Environment, file: string): Lookup {
  const expanded = expandHome(path.trim(), environment.userHome);
  const full = isAbsolute(expanded) ? expanded : join(dirname(file), expanded);
  try {
    const value = readNamedFile(full, MAX_SECRET_BYTES).trim();
    return value === '' ? { missing: `the file ${full} is empty` } : { value };
  } catch (thrown) {
    return { missing: `the file ${full} ${messageOf(thrown)}` };
  }
}

/** Whether a path is a key of a provider or a search engine, which may be left out. */
function isDroppable(path: Path): boolean {
  const last = path.at(-1);
  const list = typeof last === 'number' ? path.slice(0, -1) : path;
  if (list.at(-1) !== 'keys') return false;
  return list.length === 3 && list[0] === 'providers'
    ? true
    : list[0] === 'server_tools' && list[2] === 'engines';
}
