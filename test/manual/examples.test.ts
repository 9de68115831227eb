/** What the manual shows works: every YAML is taken by the parser, every link leads somewhere. */

import { describe, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { environmentFrom } from '../../src/config/environment.ts';
import { describeProblem } from '../../src/config/file/problem.ts';
import { parseConfig } from '../../src/config/load.ts';
import { anchorOf } from '../../src/manual/markdown.ts';
import { FILES, fences, prose, ROOT } from './files.ts';

const yamls = FILES.flatMap(({ path, text }) =>
  fences(text, 'yaml').map((yaml, index) => ({ name: `${path}, block ${index + 1}`, yaml })),
);

const CERTIFICATES = join(ROOT, 'test/support/certificates');
const ACCOUNT = JSON.stringify({ type: 'service_account', client_email: 'a@b', private_key: 'k' });
const AWS_KEYS = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'a-secret-key' };

describe('YAML', () => {
  test('there is some', () => {
    expect(yamls.length).toBeGreaterThan(10);
  });

  test.each(yamls)('$name is a configuration without a problem', ({ yaml }) => {
    const folder = mkdtempSync(join(tmpdir(), 'hopgate-docs-'));
    const secret = join(folder, 'secret');
    writeFileSync(secret, 'sk-from-a-file-0123456789');
    const names = [...yaml.matchAll(/\$\{([A-Z][A-Z0-9_]*)/g)].map(([, name]) => name!);
    const variables = Object.fromEntries(
      names.map((name) => [name, `the-value-of-the-variable-${name}`]),
    );
    const account = join(folder, 'account.json');
    writeFileSync(account, ACCOUNT);
    const text = yaml
      .replace(/\$\{file:[^}]+\}/g, `\${file:${secret}}`)
      .replace(/(credentials_file: )\S+/g, `$1${account}`)
      // The certificate of the example must be one.
      .replace(/^( +ca_file:) \/.+$/gm, `$1 ${join(CERTIFICATES, 'localhost.pem')}`)
      .replace(/^( +cert_file:) \/.+$/gm, `$1 ${join(CERTIFICATES, 'localhost.pem')}`)
      .replace(/^( +key_file:) \/.+$/gm, `$1 ${join(CERTIFICATES, 'localhost.key.pem')}`);
    const environment = environmentFrom({ HOME: folder, ...AWS_KEYS, ...variables });
    const result = parseConfig(text, join(folder, 'hopgate.yaml'), environment);
    rmSync(folder, { recursive: true });
    const said = result.ok ? [] : result.problems.map((one) => describeProblem(one));
    expect(said).toEqual([]);
    expect(result.warnings.map((one) => describeProblem(one))).toEqual([]);
  });
});

describe('links', () => {
  const links = FILES.flatMap(({ path, text }) =>
    [...prose(text).matchAll(/\]\(([^()\s]+)\)/g)].map(([, to]) => ({ path, to: to! })),
  );
  const anchors = (path: string) => {
    const text = FILES.find((file) => file.path === path)?.text ?? '';
    return [...prose(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) => anchorOf(heading!));
  };

  test('relative ones lead to files and headings that exist', () => {
    expect(links.length).toBeGreaterThan(40);
    const lost = links
      .filter(({ to }) => !/^https?:/.test(to))
      .filter(({ path, to }) => {
        const [file = '', anchor] = to.split('#', 2);
        const target = file === '' ? path : normalize(join(dirname(path), file));
        if (!existsSync(join(ROOT, target))) return true;
        return anchor !== undefined && !anchors(target).includes(anchor);
      })
      .map(({ path, to }) => `${path} → ${to}`);
    expect(lost).toEqual([]);
  });

  test('both READMEs link every page, the Chinese one in Chinese where there is such a page', () => {
    const linked = (readme: string) =>
      links.filter(({ path }) => path === readme).map(({ to }) => to);
    const pages = FILES.map(({ path }) => path).filter((path) => path.startsWith('docs/'));
    const english = pages.filter((page) => !page.endsWith('.zh-CN.md'));
    const chinese = english.map((page) => {
      const translated = page.replace(/\.md$/, '.zh-CN.md');
      return pages.includes(translated) ? translated : page;
    });
    expect(english.filter((page) => !linked('README.md').includes(page))).toEqual([]);
    expect(chinese.filter((page) => !linked('README.zh-CN.md').includes(page))).toEqual([]);
  });
});
