/** The messages under which the page of troubleshooting can be found are those that the program says. */

import { expect, test } from 'bun:test';
import { PAGES } from '../../src/manual/pages.ts';
import { ROOT } from './files.ts';

/** Messages of other programs. */
const OTHERS = new Set(['ECONNREFUSED', 'claude --continue']);

/** All text of the sources, as it stands in them. */
async function sources(): Promise<string> {
  const files = [...new Bun.Glob('src/**/*.ts').scanSync(ROOT)];
  const texts = await Promise.all(files.map((path) => Bun.file(`${ROOT}/${path}`).text()));
  return texts.join('\n');
}

test.each(['troubleshooting', 'troubleshooting.zh-CN'])(
  'each message of %s is a message of the program',
  async (name) => {
    const page = PAGES.find((one) => one.name === name)!;
    const text = await sources();
    const quoted = [...page.text.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`([^`]+)`/g)].map(([, message]) => message!),
    );
    expect(quoted.length).toBeGreaterThan(20);
    // `…` stands for what the program puts in.
    const unknown = quoted.filter(
      (message) =>
        !OTHERS.has(message) &&
        !message.split('…').every((part) => text.includes(part.trim()) || part.trim().length < 4),
    );
    expect(unknown).toEqual([]);
  },
);
