/** The notices that licences ask for: everything bundled with its own text, and what the runtime brings along. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import runtime from '../../packaging/licenses/runtime.json' with { type: 'json' };
import type { Bundled } from './bundled.ts';

const ROOT = join(import.meta.dir, '../..');
const LINE = '-'.repeat(80);

/** A part of the runtime. */
export interface RuntimePart {
  readonly name: string;
  /** An SPDX expression. */
  readonly license: string;
  /** Copyright lines. */
  readonly by: readonly string[];
  readonly source: string;
  /** A version or a commit; undefined where the runtime does not tell. */
  readonly version: string | undefined;
}

/** What Bun links and embeds, with versions as the Bun that runs this tells them. */
export const RUNTIME_PARTS: readonly RuntimePart[] = runtime.parts.map(({ revision, ...part }) => {
  const version = revision === undefined ? undefined : process.versions[revision];
  if (revision !== undefined && version === undefined) {
    throw new Error(`this bun does not tell its version of ${part.name} (${revision})`);
  }
  return { ...part, version };
});

/** The licences that an SPDX expression names, exceptions too. */
export const licensesIn = (expression: string): readonly string[] =>
  expression.split(/\s+(?:AND|OR|WITH)\s+|[()]/).filter((id) => id !== '');

/**
 * The text of a licence; `-or-later` is the same text.
 * @throws Error when there is none
 */
export function licenseText(id: string): string {
  const name = id.replace(/-or-later$/, '');
  // The project's own licence: one copy is enough.
  const path = name === 'Apache-2.0' ? 'LICENSE' : `packaging/licenses/${name}.txt`;
  return readFileSync(join(ROOT, path), 'utf8').trim();
}

const part = ({ name, version, license, by, source }: RuntimePart) =>
  [
    `${name}${version === undefined ? '' : ` ${version}`}`,
    `    ${license}, ${source}`,
    ...by.map((line) => `    ${line}`),
  ].join('\n');

/**
 * The text for archives and packages; the same sources give the same text.
 * @throws Error when a package brings no licence text
 */
export function notices(packages: readonly Bundled[]): string {
  const bundled = packages.map(({ name, version, license, text: own }) => {
    // The Apache License names no holder, so one copy of its text is as good as another.
    const text = own === '' && license === 'Apache-2.0' ? licenseText(license) : own;
    if (text === '') throw new Error(`${name} ${version} brings no licence text`);
    return `${LINE}\n${name} ${version} (${license})\n\n${text}\n`;
  });
  const ids = [...new Set(RUNTIME_PARTS.flatMap(({ license }) => licensesIn(license)))].sort();
  return `THIRD-PARTY NOTICES

hopgate is under the Apache License 2.0 (see LICENSE). Its executable contains the packages and data of part 1, and the
runtime Bun ${Bun.version} (revision ${Bun.revision}) with its parts, part 2. Part 3 holds the licence texts of part 2.


PART 1: PACKAGES AND DATA

${bundled.join('\n')}
${LINE}
The model catalogue (windows, limits, prices): data of LiteLLM (https://github.com/BerriAI/litellm) and models.dev
(https://models.dev), changed in form (MIT)

Copyright (c) 2023 Berri AI
Copyright (c) 2025 spin.dev

${licenseText('MIT')}


PART 2: THE RUNTIME

Bun ${Bun.version} is under the MIT licence (https://github.com/oven-sh/bun, revision ${Bun.revision}).
It links JavaScriptCore and other parts of WebKit, under the GNU Library General Public License, version 2 or
later, and tinycc, under the GNU Lesser General Public License, version 2.1 or later. You may change these
libraries and use hopgate with them. Their sources, as Bun uses them:

    https://github.com/oven-sh/WebKit, commit ${process.versions.webkit}
    https://github.com/oven-sh/tinycc, commit ${process.versions.tinycc}

Build a Bun with them, as LICENSE.md of its sources describes ("bun run build:local"); then, in the sources of
hopgate, run "bun build.ts" with that Bun: the executable it writes runs on it. Nothing in hopgate's licence
forbids this, nor reverse engineering to find errors in such changes.

Bun also contains crates of the Rust ecosystem; Cargo.lock of the revision above lists them. Its publishers name
these parts:

${RUNTIME_PARTS.map(part).join('\n\n')}


PART 3: LICENCE TEXTS OF THE RUNTIME'S PARTS

${ids.map((id) => `${LINE}\n${id}\n\n${licenseText(id)}\n`).join('\n')}`;
}
