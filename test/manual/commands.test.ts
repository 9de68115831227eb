/** Every command that the manual shows runs, against the demo and in a home of its own; those that cannot are listed. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMANDS } from '../../src/cli/commands.ts';
import { parseLine } from '../../src/cli/parse.ts';
import { cleanEnv } from '../support/binary.ts';
import { FILES, fences, prose, ROOT } from './files.ts';
import { commandsOf, shellCommands } from './shell-commands.ts';

const DOCKER = 'needs Docker; test/packaging/docker.test.ts builds the image where there is one';
const NGINX_STREAM = `curl -sN https://llm.example/v1/messages -H "x-api-key: $ANN_KEY" -H 'content-type: application/json' -d '{"model":"glm-4.7","max_tokens":200,"stream":true,"messages":[{"role":"user","content":"Count to fifty."}]}'`;

/** Commands that are not run here, each with its reason. One that no page shows any more fails the test. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm install && npm start': 'installs packages and does not end',
  'npm test': 'is this very run',
  'npm run build': 'the tests of the executable build it',
  'hopgate serve': 'does not end; the other commands ask the server that this test starts with it',
  'hopgate setup claude': 'asks a person; its tests answer',
  claude: 'is Claude Code itself',
  'hopgate doctor': 'asks the vendor; its tests have one of their own',
  "sudo sh -c 'set -a; . /etc/hopgate/hopgate.env; exec setpriv --reuid hopgate --regid hopgate --clear-groups env HOPGATE_HOME=/var/lib/hopgate hopgate keys list'":
    'needs the service and its user',
  'hopgate status': 'asks the port of the configuration; test/cli/commands/look.test.ts answers',
  'curl -s https://llm.example/readyz': 'asks a server that does not exist',
  [NGINX_STREAM]: 'asks a server that does not exist',
  'cd packaging/docker': DOCKER,
  'cp hopgate.env.example hopgate.env': DOCKER,
  'docker compose up --detach': DOCKER,
  'docker compose ps': DOCKER,
  'docker compose logs --no-log-prefix hopgate | hopgate logs -': DOCKER,
  'docker compose exec hopgate hopgate status': DOCKER,
  'docker compose exec hopgate hopgate samples': DOCKER,
  'hopgate setup qwen': 'asks a person; its tests answer',
  'hopgate setup gemini': 'asks a person; its tests answer',
  'GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:5520 GEMINI_API_KEY=any gemini':
    'needs the Gemini CLI; scripts/agents.ts runs it',
  'ANTHROPIC_BASE_URL=http://127.0.0.1:5520 ANTHROPIC_AUTH_TOKEN=hopgate claude':
    'needs Claude Code; scripts/agents.ts runs it',
  'sh install.sh --base-url https://downloads.example/hopgate/latest':
    'test/packaging/install.test.ts runs it against a local server, under three shells',
  'sudo apt install ./hopgate_*_amd64.deb':
    'test/packaging/debian.test.ts installs the package into a root of its own',
  'sudo systemctl enable --now hopgate': 'changes the machine; needs a running systemd',
  'brew install ./hopgate.rb': 'test/packaging/formula.test.ts reads the formula with Ruby',
  'brew services start hopgate': 'needs Homebrew; the same test reads the service',
  'sudo systemctl kill --kill-who=main --signal=USR2 hopgate':
    'needs a running systemd; test/server/process/restart.test.ts sends the signal itself',
};

/** What a block may be: any other language could be a command that no test runs. */
const LANGUAGES = [
  ...['sh', 'yaml', 'json', 'js', 'ts', 'python', 'text', 'http', 'toml', 'svg'],
  ...['ini', 'nginx'],
];

const shown = FILES.flatMap(({ path, text }) =>
  shellCommands(text).map((command) => ({ path, ...command })),
);
const isRun = ({ text }: { text: string }) => !Object.hasOwn(NOT_RUN, text);
// The same line in two languages of a page is one command.
const toRun = [
  ...new Map(
    shown.filter(isRun).map((one) => [JSON.stringify([one.before, one.text]), one]),
  ).values(),
];
const scripts = FILES.flatMap(({ path, text }) =>
  ['js', 'ts'].flatMap((language) =>
    fences(text, language).map((code, index) => ({
      path,
      code,
      name: `block ${index + 1}.${language}`,
    })),
  ),
);

const home = mkdtempSync(join(tmpdir(), 'hopgate-manual-'));
const env = { ...cleanEnv(home), PATH: `${home}/bin:${process.env.PATH ?? ''}`, NO_COLOR: '1' };
let server: Bun.Subprocess<'ignore', 'pipe', 'ignore'> | undefined;
let port = '';

beforeAll(async () => {
  await mkdir(join(home, 'bin'));
  const program = join(home, 'bin/hopgate');
  await Bun.write(program, `#!/bin/sh\nexec '${process.execPath}' '${ROOT}/src/main.ts' "$@"\n`);
  await chmod(program, 0o755);
  symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'));
  server = Bun.spawn([program, 'serve', '--port', '0'], {
    cwd: home,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  });
  const reader = server.stdout.getReader();
  let said = '';
  while (port === '') {
    const { value, done } = await reader.read();
    if (done) throw new Error('The server did not start.');
    said += new TextDecoder().decode(value);
    port = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1] ?? '';
  }
}, 30_000);

afterAll(async () => {
  server?.kill('SIGTERM');
  await server?.exited;
  rmSync(home, { recursive: true, force: true });
});

/** Runs it where the manual's reader would be: the gateway is there, and so is the program. */
async function run(command: readonly string[]) {
  const child = Bun.spawn([...command], {
    cwd: home,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect({ code, stderr: code === 0 ? '' : stderr + stdout }).toEqual({ code: 0, stderr: '' });
  return { stdout, stderr };
}

describe('commands of the manual', () => {
  test('what is not run is still shown somewhere', () => {
    const texts = new Set(shown.map(({ text }) => text));
    expect(Object.keys(NOT_RUN).filter((text) => !texts.has(text))).toEqual([]);
  });

  test('there are some to run', () => {
    expect(toRun.length).toBeGreaterThan(15);
  });

  test('no block says what it is in a way that hides commands', () => {
    const odd = FILES.flatMap(({ path, text }) => {
      // Every second mark closes a block.
      const marks = [...text.matchAll(/^\s*```(.*)$/gm)].map(([, language]) => language!.trim());
      return marks
        .filter((language, at) => at % 2 === 0 && !LANGUAGES.includes(language))
        .map((language) => `${path}: \`\`\`${language}`);
    });
    expect(odd).toEqual([]);
  });

  test.each(toRun)(
    '$path: $text',
    async ({ text, before }) => {
      const script = [...before, text].join('\n').replaceAll('5520', port);
      const { stdout, stderr } = await run(['sh', '-c', script]);
      if (/^(hopgate|curl)\b/.test(text) && !/[>|]/.test(text.replace(/'[^']*'/g, ''))) {
        expect((stdout + stderr).trim()).not.toBe('');
      }
      // Responses says `error: null` when there is none.
      if (/^curl\b/.test(text) && stdout.startsWith('{')) {
        expect(JSON.parse(stdout).error ?? null).toBeNull();
      }
    },
    30_000,
  );

  for (const { path, name, code } of scripts) {
    test(`${path}, ${name}: runs`, async () => {
      const file = join(home, `${path.replace(/\W/g, '-')}-${name.replaceAll(' ', '-')}`);
      await Bun.write(file, code.replaceAll('5520', port));
      await run([process.execPath, file]);
    }, 30_000);
  }

  const python = Bun.which('python3');
  test.skipIf(python === null)(
    `Python is Python${python === null ? ' [SKIPPED: no python3 on this machine]' : ''}`,
    async () => {
      for (const { path, text } of FILES) {
        for (const code of fences(text, 'python')) {
          const child = Bun.spawn([python!, '-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
            stdin: new Blob([code]),
            stdout: 'ignore',
            stderr: 'pipe',
          });
          expect([path, await new Response(child.stderr).text()]).toEqual([path, '']);
        }
      }
    },
    30_000,
  );

  test('JSON is JSON', () => {
    const wrong = FILES.flatMap(({ path, text }) =>
      fences(text, 'json')
        .filter((json) => {
          try {
            JSON.parse(json);
            return false;
          } catch {
            return true;
          }
        })
        .map((json) => `${path}: ${json}`),
    );
    expect(wrong).toEqual([]);
  });

  test('commands inside of sentences are command lines that the program takes', () => {
    const inline = FILES.flatMap(({ path, text }) =>
      [...prose(text).matchAll(/`hopgate ([a-zC][^`]*)`/g)].map(([, words]) => ({
        path,
        words: words!,
      })),
    );
    expect(inline.length).toBeGreaterThan(20);
    const wrong = inline.flatMap(({ path, words }) => {
      // `<command>` stands for any of them; quotes hold one word.
      const argv = words
        .replace(/<[^>]*>|\bCOMMAND\b/g, 'serve')
        .match(/'[^']*'|\S+/g)!
        .map((word) => word.replaceAll("'", ''));
      try {
        parseLine(argv, COMMANDS);
        return [];
      } catch (thrown) {
        // "`hopgate setup` writes …" speaks of the command, not to it.
        if (argv.length === 1 && COMMANDS.some(({ name }) => name === argv[0])) return [];
        return [`${path}: hopgate ${words}: ${(thrown as Error).message}`];
      }
    });
    expect(wrong).toEqual([]);
  });
});

describe('reading of blocks', () => {
  test('lines that go on, quotes, here-documents and comments', () => {
    const block = `# what follows
curl -s http://h/ \\
  -d '{"a": # no comment
  1}'
export KEY=one  # a comment
cat > x <<'END'
line # kept
END
hopgate check
`;
    expect(commandsOf(block)).toEqual([
      { text: `curl -s http://h/ \\\n  -d '{"a": # no comment\n  1}'`, before: [] },
      { text: 'export KEY=one', before: [] },
      { text: "cat > x <<'END'\nline # kept\nEND", before: ['export KEY=one'] },
      { text: 'hopgate check', before: ['export KEY=one'] },
    ]);
  });
});
