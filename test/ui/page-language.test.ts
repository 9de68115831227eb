/** The page in Chinese: every text has one, none is left over, and what is data stays as it is. */

import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import chinese from '../../src/ui/page/chinese.json' with { type: 'json' };

const ROOT = join(import.meta.dir, '../..');
const PAGE = join(ROOT, 'src/ui/page');
const transpilers = {
  ts: new Bun.Transpiler({ loader: 'ts' }),
  tsx: new Bun.Transpiler({ loader: 'tsx' }),
};

/** The files as JavaScript, in which a text between tags is a string. */
const scripts = readdirSync(PAGE, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => {
    const text = readFileSync(join(PAGE, file), 'utf8');
    return [file, transpilers[file.endsWith('x') ? 'tsx' : 'ts'].transformSync(text)] as const;
  });

/** The end of a template that begins in front of `at`, and its parts; the texts inside its values are added to `into`. */
function template(script: string, at: number, into: Set<string> | undefined): number {
  const parts = [''];
  while (script[at] !== '`') {
    if (script.startsWith('${', at)) {
      at = code(script, at + 2, into !== undefined ? into : undefined);
      parts.push('');
    } else {
      const length = script[at] === '\\' ? 2 : 1;
      parts[parts.length - 1] += script.slice(at, at + length);
      at += length;
    }
  }
  into?.add(keyOf(parts));
  return at + 1;
}

const keyOf = (parts: readonly string[]): string =>
  parts
    .map((part, i) => (i === 0 ? part : `{${i}}${part}`))
    .join('')
    .replaceAll('\\n', '\n')
    .replace(/\s+/g, ' ')
    .trim();

/** The end of a value in a template. */
function code(script: string, at: number, into: Set<string> | undefined): number {
  for (let depth = 0; depth >= 0; ) {
    const tag = /^(t|rich)`/.exec(script.slice(at, at + 5));
    const before = script[at - 1] ?? ' ';
    if (tag !== null && !/[\w$.]/.test(before)) at = template(script, at + tag[0].length, into);
    else if (script[at] === '`') at = template(script, at + 1, undefined);
    else if (script[at] === '"') {
      const end = /^"(?:[^"\\]|\\.)*"/.exec(script.slice(at))![0].length;
      at += end;
    } else {
      if (script[at] === '{') depth++;
      if (script[at] === '}') depth--;
      at++;
    }
  }
  return at;
}

const texts = new Set<string>();
for (const [file, script] of scripts) {
  if (file === 'kit/language.ts') continue;
  for (const { index } of script.matchAll(/(?<![\w$.])(t|rich)`/g)) {
    template(script, script.indexOf('`', index) + 1, texts);
  }
  const words = /\bseveral\((?:[^()]|\([^()]*\))*?, "([^"]+)"(?:, "([^"]+)")?\)/g;
  for (const [, one, many] of script.matchAll(words)) texts.add(`{1} ${many ?? `${one}s`}`);
}
/** Texts without words, such as `{1} / {2}`, are the same in both. */
const worded = [...texts].filter((text) => /[A-Za-z]{2,}/.test(text));

/** Names of keys, of files and of what is written in a configuration; names of classes. */
const LEFT_AS_IT_IS = [
  /^(verdict sure|tokens (cached|out)|row new)$/,
  /^(Esc|Space|Home {2}End|Hello!|hop|gate|hopgate( [\w -]+)?|English|[A-Z]+|\w+=\w+.*|provider\/model|refuse)$/,
  /^(Chat|Responses|Messages|Gemini|Claude Code, Codex, …)$/,
  /^(Enter|Escape|Home|End|Page(Up|Down)|Arrow(Up|Down|Left|Right)|AbortError|Bearer .*|Sends?)$/,
];
const LOOKS_LIKE_TEXT = /^\(\w+\)$|^\W*[A-Z][a-z]+|[a-z]{2,} [a-z(]{2,}/;

describe('the page in Chinese', () => {
  test('every text has its Chinese, with the same values', () => {
    expect(texts.size).toBeGreaterThan(400);
    const all: Readonly<Record<string, string>> = chinese.page;
    expect(worded.filter((text) => all[text] === undefined)).toEqual([]);
    const values = (text: string) => [...new Set(text.match(/\{\d\}/g))].sort().join();
    const wrong = Object.entries(all).filter(([text, its]) => values(text) !== values(its));
    expect(wrong).toEqual([]);
    const english = Object.entries(all).filter(([, its]) => !/\p{Script=Han}|^\W*\{1\}/u.test(its));
    expect(english.map(([text]) => text)).toEqual([]);
  });

  test('no Chinese is left of a text that is gone', () => {
    expect(Object.keys(chinese.page).filter((text) => !texts.has(text))).toEqual([]);
  });

  test('no text stands in the code without being looked up', () => {
    const bare = scripts.flatMap(([file, script]) => {
      if (file === 'kit/visible.ts') return [];
      // `several` looks its words up itself.
      const shown = script
        .replace(/\bseveral\((?:[^()]|\([^()]*\))*\)/g, '')
        .replace(
          /(class|closest\(|querySelector\(|includes\()[:(]? ?(\w+ \? )?"[^"]*"( : "[^"]*")?/g,
          '',
        );
      const strings = [
        ...shown.matchAll(
          /(children|title|label|hint|placeholder|"aria-label"|does|about|lead)?(?:: )?"((?:[^"\\\n]|\\.)*)"/g,
        ),
      ];
      return strings.flatMap(([, name, text]) => {
        const isText = name === undefined ? LOOKS_LIKE_TEXT : /[a-z]{2,}/;
        return isText.test(text!) && !LEFT_AS_IT_IS.some((one) => one.test(text!))
          ? [`${file}: ${text}`]
          : [];
      });
    });
    expect(bare).toEqual([]);
  });

  test('the sentences of the gateway that the page knows are those that the gateway says', () => {
    const sources = [
      'src/ui/api/sessions',
      'src/ui/api/jobs',
      'src/samples/compare',
      'src/samples/bisect',
    ].flatMap((folder) =>
      readdirSync(join(ROOT, folder)).map((file) => readFileSync(join(ROOT, folder, file), 'utf8')),
    );
    const said = sources.join('\n');
    const gone = Object.keys(chinese.gateway).filter((sentence) =>
      // Some are made of parts, as `3 messages: 2 the same; 1 added` is.
      sentence.match(/[a-z]{3,}/gi)?.some((word) => !said.includes(word.replace(/s$/, ''))),
    );
    expect(gone).toEqual([]);
  });
});
