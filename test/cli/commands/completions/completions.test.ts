/** Completions asked of the shells themselves, and the manual page of man. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMAND_GROUPS, optionsOf } from '../../../../src/cli/command.ts';
import { CLIENT_NAMES } from '../../../../src/cli/commands/setup/client-names.ts';
import { COMMANDS } from '../../../../src/cli/commands.ts';
import { createWorld, type World } from '../../world.ts';

let world: World;
let folder: string;
beforeAll(async () => {
  world = createWorld();
  folder = mkdtempSync(join(tmpdir(), 'hopgate-completions-'));
  for (const [shell, name] of [
    ['bash', 'hopgate.bash'],
    ['zsh', '_hopgate'],
    ['fish', 'hopgate.fish'],
  ] as const) {
    const { code, out, err } = await world.run(['completions', shell]);
    expect([code, err]).toEqual([0, '']);
    writeFileSync(join(folder, name), out);
  }
  writeFileSync(join(folder, 'a file.yaml'), '');
  // The program as the shells find it: it prints two ids where it is asked for them as the scripts ask.
  const main = join(import.meta.dir, '../../../../src/main.ts');
  const program = `#!/bin/sh
if [ "$*" = "samples list --ids --limit 200" ]; then printf 'req_1_aa\\nreq_2_bb\\n'; exit; fi
exec '${process.execPath}' '${main}' "$@"
`;
  writeFileSync(join(folder, 'hopgate'), program, { mode: 0o755 });
});
afterAll(() => {
  world.remove();
  rmSync(folder, { recursive: true, force: true });
});

async function said(command: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: folder,
    env: {
      PATH: `${folder}:${process.env.PATH}`,
      HOME: folder,
      TERM: 'dumb',
      LC_ALL: 'C.UTF-8',
      ...env,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  if (err !== '') throw new Error(err);
  return out;
}

/** The first word: commands of groups stand behind the name of their group. */
const names = [
  ...COMMANDS.filter(({ group }) => group === undefined).map(({ name }) => name),
  ...Object.keys(COMMAND_GROUPS),
];
const inGroup = (group: string) =>
  COMMANDS.filter((command) => command.group === group).map(({ name }) => name);
const optionNames = (name: string) =>
  optionsOf(COMMANDS.find((command) => command.name === name)!).map((option) => `--${option.name}`);

/** A line to complete, and what must be offered: exactly these. */
const CASES: readonly (readonly [line: string, offers: readonly string[]])[] = [
  ['hopgate ', [...names, 'help']],
  ['hopgate se', names.filter((name) => name.startsWith('se'))],
  ['hopgate --po', ['--port']],
  ['hopgate serve --log-level ', ['trace', 'debug', 'info', 'warn', 'error', 'silent']],
  ['hopgate serve --log-level e', ['error']],
  ['hopgate setup ', CLIENT_NAMES],
  ['hopgate debug ', inGroup('debug')],
  ['hopgate admin s', ['service', 'state']],
  ['hopgate admin service --system un', ['uninstall']],
  ['hopgate debug samples show ', ['req_1_aa', 'req_2_bb']],
  ['hopgate setup --model x co', CLIENT_NAMES.filter((name) => name.startsWith('co'))],
  ['hopgate setup claude ', []],
  ['hopgate service --system un', ['uninstall']],
  ['hopgate help comp', ['completions']],
  ['hopgate check --config a', ['a file.yaml']],
  ['hopgate check --sch', ['--schema']],
  ['hopgate samples show ', ['req_1_aa', 'req_2_bb']],
  ['hopgate samples show req_2', ['req_2_bb']],
  [
    'hopgate samples diff req_1_aa ',
    ['client-request', 'provider-request', 'provider-response', 'client-response'],
  ],
  ['hopgate bisect req_1', ['req_1_aa']],
  ...COMMANDS.map(({ name }) => [`hopgate ${name} --`, optionNames(name)] as const),
];

const bash = Bun.which('bash');
describe.skipIf(bash === null)(
  `bash${bash === null ? ' [SKIPPED: not on this machine]' : ''}`,
  () => {
    for (const [line, offers] of CASES) {
      test(`"${line}" offers ${offers.length > 4 ? `${offers.length} words` : offers.join(', ') || 'nothing'}`, async () => {
        const script = `source ./hopgate.bash; COMP_WORDS=(${line.endsWith(' ') ? `${line}''` : line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _hopgate; printf '%s\\n' "\${COMPREPLY[@]}"`;
        const out = await said([bash!, '--norc', '-c', script]);
        expect(
          out
            .split('\n')
            .filter((word) => word !== '')
            .sort(),
        ).toEqual([...new Set(offers)].sort());
      });
    }

    test('"--option=value", which bash cuts in three, is completed too', async () => {
      const script = `source ./hopgate.bash; COMP_WORDS=(hopgate serve --log-format = p); COMP_CWORD=4; _hopgate; echo "\${COMPREPLY[*]}"`;
      expect(await said([bash!, '--norc', '-c', script])).toBe('pretty\n');
    });
  },
);

const fish = Bun.which('fish');
describe.skipIf(fish === null)(
  `fish${fish === null ? ' [SKIPPED: not on this machine]' : ''}`,
  () => {
    for (const [line, offers] of CASES) {
      test(`"${line}" offers ${offers.length > 4 ? `${offers.length} words` : offers.join(', ') || 'nothing'}`, async () => {
        const out = await said([
          fish!,
          '--no-config',
          '-c',
          `source hopgate.fish; complete -C '${line}'`,
        ]);
        const words = out.split('\n').map((one) => one.split('\t')[0]!.replaceAll('\\', ''));
        expect(words.filter((word) => word !== '').sort()).toEqual([...new Set(offers)].sort());
      });
    }
  },
);

const zsh = Bun.which('zsh');
describe.skipIf(zsh === null)(`zsh${zsh === null ? ' [SKIPPED: not on this machine]' : ''}`, () => {
  // The completion only works while a line is edited: so inside a terminal of its own, where Tab is
  // pressed, and a marker is printed when the list is out.
  const DRIVER = `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PROMPT=; unsetopt zle_bracketed_paste; fpath=($PWD \\$fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-separator '#'; show() { zle list-choices; zle -R; print -n '<SHOWN>' }; zle -N show; bindkey '^I' show; LISTMAX=1000; COLUMNS=200; LINES=200; print RE''ADY"
zpty -r z out '*READY*'
for line in "$@"; do
  zpty -w -n z "$line"$'\\t'
  zpty -r z out '*<SHOWN>*'
  print -r -- "<LINE>$out"
  zpty -w -n z $'\\x15'
done
zpty -d z
`;
  test('offers the same words when Tab is pressed', async () => {
    writeFileSync(join(folder, 'driver.zsh'), DRIVER);
    // With one word left, or none, there is no list to read.
    const listed = CASES.filter(([line, offers]) => offers.length > 1 && !line.endsWith('--'));
    const out = await said([zsh!, '-f', 'driver.zsh', ...listed.map(([line]) => line)], {
      TERM: 'vt100',
    });
    const answers = out.split('<LINE>').slice(1);
    expect(answers).toHaveLength(listed.length);
    listed.forEach(([line, offers], i) => {
      const words = new Set(answers[i]!.split(/[^\w-]+/));
      expect([line, offers.filter((word) => !words.has(word))]).toEqual([line, []]);
    });
  }, 30_000);

  test('takes the script without a complaint', async () => {
    expect(await said([zsh!, '-f', '-n', '_hopgate'])).toBe('');
  });
});

const man = Bun.which('man') !== null && Bun.which('groff') !== null;
describe.skipIf(!man)(`man${man ? '' : ' [SKIPPED: no man with groff on this machine]'}`, () => {
  test('reads the page without a warning, and every command and option is in it', async () => {
    const { code, out, err } = await world.run(['man']);
    expect([code, err]).toEqual([0, '']);
    // Without an encoding, roff reads bytes.
    expect(out).toMatch(/^[\n -~]*$/);
    const page = join(folder, 'hopgate.1');
    writeFileSync(page, out);
    const text = await said(['man', '--warnings', '-l', page], {
      MANWIDTH: '120',
      MANPAGER: 'cat',
    });
    for (const { name, options = {}, examples, summary } of COMMANDS) {
      expect(text).toContain(`hopgate ${name}`);
      expect(text.replace(/\s+/g, ' ').replaceAll('‐ ', '')).toContain(summary);
      for (const option of Object.keys(options)) expect(text).toContain(`--${option}`);
      for (const line of Object.keys(examples)) expect(text).toContain(line);
    }
  });
});

test('texts that roff would take for its own words come out as they are', async () => {
  const { manPage } = await import('../../../../src/cli/commands/man.ts');
  const command = { ...COMMANDS[0]!, description: [".hidden 'quoted' back\\slash ~home ^hat"] };
  const page = manPage([command], '1');
  expect(page).toContain('\n\\&.hidden \\(aqquoted\\(aq back\\eslash \\(tihome \\(hahat\n');
});

test('an unknown shell is wrong usage', async () => {
  const { code, err } = await world.run(['completions', 'fihs']);
  expect([code, err]).toEqual([2, expect.stringContaining('Did you mean "fish"?')]);
});
