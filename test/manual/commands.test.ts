/**
 * Everything that the manual shows and that can be run is run, in both languages, against one gateway with the demo model.
 * What cannot is listed with its reason, so that a new block is either run or told about.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../../src/cli/commands.ts';
import { parseLine } from '../../src/cli/parse.ts';
import { createWorld } from '../cli/world.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { blocksOf, FILES, fences, OTHER_FILES, prose, ROOT } from './files.ts';
import { commandsOf, exportsIn, plainWords, shellCommands } from './shell-commands.ts';

const DOCKER = 'needs Docker; test/packaging/docker.test.ts builds the image where there is one';
const HELM = 'needs a cluster; test/packaging/helm.test.ts reads the chart';

/** Commands that are not run here, each with its reason. One that no page shows any more fails the test. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm install && npm start': 'installs packages and does not end',
  'npm test': 'is this very run',
  'npm run build': 'the tests of the executable build it',
  claude: 'is Claude Code itself',
  "sudo sh -c 'set -a; . /etc/hopgate/hopgate.env; exec setpriv --reuid hopgate --regid hopgate --clear-groups env HOPGATE_HOME=/var/lib/hopgate hopgate keys list'":
    'needs the service and its user',
  'docker build -f packaging/docker/Dockerfile -t registry.example.com/hopgate:0.1.0 .': DOCKER,
  'docker push registry.example.com/hopgate:0.1.0': DOCKER,
  'kubectl create secret generic gateway-keys --from-env-file=hopgate.env': HELM,
  'helm install llm deploy/helm/hopgate --values my-values.yaml \\\n  --set image.repository=registry.example.com/hopgate --set secret.existing=gateway-keys':
    HELM,
  'hopgate doctor --config hopgate.yaml':
    'needs engines on three machines; test/e2e/three-machines.test.ts starts them',
  'systemctl stop hopgate': 'changes the machine; needs a running systemd',
  'llama-server -m model.gguf --port 8080 --jinja &': 'needs llama.cpp',
  'cd packaging/docker': DOCKER,
  'cp hopgate.env.example hopgate.env': DOCKER,
  'docker compose up --detach': DOCKER,
  'docker compose ps': DOCKER,
  'docker compose logs --no-log-prefix hopgate | hopgate logs -': DOCKER,
  'docker compose exec hopgate hopgate status': DOCKER,
  'docker compose exec hopgate hopgate samples': DOCKER,
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

/** Languages whose blocks are all run, parsed or compared below. */
const RUN = ['sh', 'js', 'ts', 'python', 'yaml', 'json'];

/** Blocks in other languages, by page and first line, each with its reason. */
const NOT_RUN_BLOCKS: Readonly<Record<string, string>> = {
  "ARCHITECTURE.md, text: codecs/<name>/plugin.ts       the route of the protocol, matched by Bun's own router":
    'names files; test/manual/contributing.test.ts looks for them',
  "ARCHITECTURE.md, text: gateway/histories/            the store: by owner, protocol and session (the client's own id, else the first messages);":
    'names files; test/manual/contributing.test.ts looks for them',
  'ARCHITECTURE.md, text: state/sql/                    one SQL for two databases: a file, or Postgres':
    'names files; test/manual/contributing.test.ts looks for them',
  'docs/behind-nginx.md, nginx: server {': 'the configuration of another program',
  'docs/changed-requests.md, http: x-hopgate-notes: parameter_dropped,tool_ids_rewritten=2':
    'a header of an answer; both notes are on their page',
  'docs/docker.md, ini: HOPGATE_CLIENT_KEY=a-long-random-text': 'a file of variables',
  'docs/install.md, ini: [Service]':
    'a drop-in of systemd; test/packaging/systemd.test.ts verifies the unit',
  'docs/scale-out.md, text: $ hopgate state move --to engines':
    'needs engines; test/e2e/state-move.test.ts runs the command',
  'docs/telemetry.md, text: POST /v1/messages                     SERVER    the request, until its last byte':
    'a drawing; test/e2e/telemetry.test.ts reads the spans',
  'docs/telemetry.md, text: scrape_configs:': 'the file of another program',
};

/** JSON that the manual shows: what the program says has the same members. By page and first line. */
const JSON_SAID: Readonly<Record<string, (() => Promise<unknown>) | string>> = {
  'docs/chat-apps.md: {"event": "tool_call",': async () => (await toolEvents())[0],
  'docs/chat-apps.md: {"event": "tool_result",': async () => (await toolEvents())[1],
  'docs/how-it-works.md: {': async () => {
    vendor.enqueue({ status: 429 }, { status: 429 });
    await ask(team.url, '/v1/chat/completions', { model: 'm1', messages: [USER] });
    return ask(team.url, '/health/targets');
  },
  'docs/limits.md: { "event": "budget.warned", "id":': 'test/limits/notices.test.ts compares it',
  'docs/limits.md: { "object": "usage", "key": "ci",': () => ask(team.url, '/v1/usage'),
  'docs/scale-out.md: { "engines": {': 'needs engines; test/state/engines tests its members',
  'docs/scale-out.md: { "keys": { "source": "database", "keys":': 'needs engines',
  'docs/websocket.md: {"type":"error","status":429,"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"…"},"headers":{"retry-after":"7"}}':
    'test/e2e/websocket.test.ts compares it',
};

const PAGES = [...FILES, ...OTHER_FILES];
/** Translated pages show the same. */
const pageOf = (path: string) => path.replace('.zh-CN', '');

const shown = PAGES.flatMap(({ path, text }) =>
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
  ['js', 'ts', 'python'].flatMap((language) =>
    fences(text, language).map((code, index) => ({ path, code, language, index })),
  ),
);

const world = createWorld();
const { home } = world;
let gateway: InProcess;
/** The demo needs no key; this one has keys, and the fake vendor. */
let team: InProcess;
const ADMIN_KEY = 'the-key-of-admins-0123456789';
const TEAM_KEY = 'the-key-of-ci-0123456789';
let vendor: FakeUpstream;
let vendorConfig = '';

beforeAll(async () => {
  gateway = await startInProcess({}, join(home, '.hopgate'));
  vendor = await startFakeUpstream();
  const glm = {
    preset: 'glm',
    base_url: vendor.baseUrl('openai-chat'),
    keys: ['$'.concat('{ZHIPU_API_KEY}')],
  };
  const own = { protocol: 'openai-chat', base_url: vendor.baseUrl('openai-chat'), keys: ['sk-v'] };
  team = await startInProcess({
    providers: { own: { ...own, models: ['m1'] } },
    retry: { attempts: 1 },
    auth: { admin_keys: [ADMIN_KEY], keys: [{ name: 'ci', key: TEAM_KEY, sees: 'all' }] },
  });
  vendorConfig = world.write('vendor.yaml', JSON.stringify({ providers: { glm } }));
  symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'));
  world.fetch = ((input: string | URL | Request, init?: RequestInit) => {
    const url = input instanceof Request ? input.url : String(input);
    if (!url.startsWith('http://127.0.0.1:5520')) throw new Error('offline');
    return fetch(url.replace('http://127.0.0.1:5520', gateway.url), init);
  }) as typeof fetch;
});

afterAll(async () => {
  await gateway.stop();
  await team.stop();
  await vendor.stop();
  world.remove();
});

/** The manual's address and the placeholders of its pages are this gateway. */
const here = (text: string) =>
  text.replaceAll(/http:\/\/127\.0\.0\.1:5520|https:\/\/llm\.example(?=\/)/g, gateway.url);

/** Runs it where the manual's reader would be: the gateway is there, and so is the program. */
async function run(command: readonly string[]) {
  const child = Bun.spawn([...command], {
    cwd: home,
    env: { PATH: process.env.PATH ?? '', HOME: home, ...python },
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
  return stdout;
}

const USER = { role: 'user', content: 'Do you remember me?' };

async function ask(url: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${url}${path}`, {
    headers: { 'content-type': 'application/json', authorization: `Bearer ${TEAM_KEY}` },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });
  return response.json();
}

async function toolEvents(): Promise<readonly unknown[]> {
  const hopgate = { memory: { space: 'alice', recall: 'always' }, tool_events: true };
  const answer = await ask(gateway.url, '/v1/chat/completions', {
    model: 'demo',
    messages: [USER],
    hopgate,
  });
  return (answer as { hopgate: { tool_events: unknown[] } }).hopgate.tool_events;
}

/** Paths of all members; items of a list are one. The arguments and results of tools are their own. */
const membersOf = (value: unknown, at = ''): readonly string[] =>
  typeof value !== 'object' || value === null || /arguments|result$/.test(at)
    ? []
    : Array.isArray(value)
      ? value.flatMap((item) => membersOf(item, `${at}[]`))
      : Object.entries(value).flatMap(([name, inner]) => [
          `${at}.${name}`,
          ...membersOf(inner, `${at}.${name}`),
        ]);

/** Values for the variables that the configuration of an example names. */
function namedIn(folder: string, words: readonly string[]): Record<string, string> {
  if (folder === ROOT || !words.includes('--config')) return {};
  const names = [...readFileSync(join(folder, 'hopgate.yaml'), 'utf8').matchAll(/\$\{(\w+)/g)];
  return Object.fromEntries(
    names.map(([, name]) => [name!, `the-value-of-the-variable-${name!.toLowerCase()}`]),
  );
}

/** Runs a command of the program in this process: a person at the terminal says yes. */
async function runHere(words: readonly string[], variables: Record<string, string>) {
  Object.assign(world.variables, variables);
  const asks = words[0] === 'setup' && !words.includes('--show');
  const { code, out, err } = await world.run(words, asks ? 'y\n' : undefined);
  for (const name of Object.keys(variables)) delete world.variables[name];
  expect({ words, code, err: code === 0 ? '' : err + out }).toEqual({ words, code: 0, err: '' });
  return out + err;
}

const python3 = Bun.which('python3');
const hasOpenai =
  python3 !== null &&
  Bun.spawnSync([python3, '-c', 'import openai'], { stdout: 'ignore', stderr: 'ignore' }).success;
const python: Record<string, string> = hasOpenai
  ? {}
  : { PYTHONPATH: join(ROOT, 'test/manual/python'), PYTHONDONTWRITEBYTECODE: '1' };

describe('commands of the manual', () => {
  test('what is not run is still shown somewhere', () => {
    const texts = new Set(shown.map(({ text }) => text));
    expect(Object.keys(NOT_RUN).filter((text) => !texts.has(text))).toEqual([]);
  });

  test('there are some to run', () => {
    expect(toRun.length).toBeGreaterThan(40);
    expect(scripts.length).toBeGreaterThan(10);
  });

  test('each block is run, or listed with its reason', () => {
    const others = PAGES.flatMap(({ path, text }) =>
      blocksOf(text)
        .filter(({ language }) => !RUN.includes(language))
        .map(
          ({ language, code }) => `${pageOf(path)}, ${language}: ${code.split('\n')[0]!.trim()}`,
        ),
    );
    expect(Object.keys(NOT_RUN_BLOCKS).toSorted()).toEqual([...new Set(others)].toSorted());
    const marks = PAGES.map(({ path, text }) => [path, text.match(/^ *```/gm)?.length ?? 0]);
    const blocks = PAGES.map(({ path, text }) => [path, blocksOf(text).length * 2]);
    expect(blocks).toEqual(marks);
  });

  // A service has a /tmp of its own, so nothing under /tmp is installed as one.
  const isHidden = ({ text }: { readonly text: string }) =>
    /^\/(?:var\/)?tmp\//.test(ROOT) && text.startsWith('hopgate service install');
  for (const { path, text } of toRun.filter(isHidden)) {
    test.skip(`${path}: ${text} [SKIPPED: this checkout lies under /tmp]`, () => {});
  }

  test.each(toRun.filter((one) => !isHidden(one)))(
    '$path: $text',
    async ({ path, text, before }) => {
      const plain = /^hopgate\b/.test(text) ? plainWords(text) : undefined;
      if (plain === undefined) {
        const out = await run(['sh', '-c', here([...before, text].join('\n'))]);
        // Responses says `error: null` when there is none.
        if (/^curl\b/.test(text) && !text.includes('>')) {
          expect(out.trim()).not.toBe('');
          if (out.startsWith('{')) expect(JSON.parse(out).error ?? null).toBeNull();
        }
        return;
      }
      const folder = path.startsWith('examples/') ? join(ROOT, path, '..') : ROOT;
      const words = plain.words
        .slice(1)
        .map((word, at, all) =>
          /^--(config|dir)$/.test(all[at - 1] ?? '') ? join(folder, word) : word,
        );
      const variables = { ...namedIn(folder, words), ...exportsIn(before) };
      const asksVendor = words.join(' ') === 'doctor' && 'ZHIPU_API_KEY' in variables;
      const out = await runHere(
        asksVendor ? [...words, '--config', vendorConfig] : words,
        variables,
      );
      if (words[0] === 'serve') expect(world.served.length).toBeGreaterThan(0);
      else expect(out.trim()).not.toBe('');
      if (plain.into !== undefined) await Bun.write(join(home, plain.into.replace('~/', '')), out);
    },
    30_000,
  );

  for (const { path, language, index, code } of scripts) {
    const skipped = language === 'python' && python3 === null;
    const why = skipped ? ' [SKIPPED: no python3 on this machine]' : '';
    test.skipIf(skipped)(
      `${path}, block ${index + 1} in ${language}: runs${why}`,
      async () => {
        const ending = language === 'python' ? 'py' : language;
        const file = join(home, `${path.replace(/\W/g, '-')}-${index}.${ending}`);
        await Bun.write(file, here(code));
        const out = await run([language === 'python' ? python3! : process.execPath, file]);
        expect(out.trim()).not.toBe('');
      },
      30_000,
    );
  }

  test('JSON of the program has the members that it shows', async () => {
    const blocks = FILES.flatMap(({ path, text }) =>
      fences(text, 'json').map((code) => {
        const first = code.split('\n')[0]!;
        const name = Object.keys(JSON_SAID).find((one) =>
          `${pageOf(path)}: ${first}`.startsWith(one),
        );
        return { name: name ?? `${path}: ${first}`, code };
      }),
    );
    expect([...new Set(blocks.map(({ name }) => name))].toSorted()).toEqual(
      Object.keys(JSON_SAID).toSorted(),
    );
    for (const { name, code } of blocks) {
      const said = JSON_SAID[name];
      if (typeof said !== 'function') continue;
      const answer = await said();
      expect([
        name,
        ...membersOf(JSON.parse(code)).filter((path) => !membersOf(answer).includes(path)),
      ]).toEqual([name]);
    }
  }, 30_000);

  test('requests inside of sentences and tables are endpoints', async () => {
    const named = PAGES.flatMap(({ path, text }) =>
      [...prose(text).matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^\s`]*)[^`]*`/g)].map(
        ([, method, to]) => ({ path, method: method!, to: to! }),
      ),
    );
    const single = [...new Map(named.map((one) => [`${one.method} ${one.to}`, one])).values()];
    expect(single.length).toBeGreaterThan(30);
    const wrong: string[] = [];
    // `{space}`, `SPACE` and `…` stand for a name.
    for (const { path, method, to } of single) {
      const address = to.replace(/\{[^}]*\}|\bSPACE\b|\bID\b|…/g, 'x').replace(/\*$/, '');
      const key = to.startsWith('/admin') ? ADMIN_KEY : TEAM_KEY;
      const response = await fetch(`${team.url}${address}`, {
        method,
        headers: { authorization: `Bearer ${key}` },
      });
      const said = await response.text();
      if (said.includes('There is nothing at')) wrong.push(`${path}: ${method} ${to}`);
    }
    expect(wrong).toEqual([]);
  }, 30_000);

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
