/** The peers, installed by npm into a cache outside the repository when the benchmark first runs. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { freePort, startChild, waitForHttp } from './children.ts';
import type { Bench, Target, TargetName } from './target.ts';

const PORTKEY = '1.15.2';
const CCR = '2.0.0';
const INSTALL_LIMIT_MS = 240_000;

// Portkey with newer @hono/node-server answers 500 to every streamed request ("TypeError: immutable").
const MANIFEST = {
  private: true,
  dependencies: {
    '@portkey-ai/gateway': PORTKEY,
    '@musistudio/claude-code-router': CCR,
  },
  overrides: { '@hono/node-server': '1.8.0' },
};

/** Installs the peers unless they are there; gives their node_modules. @throws where npm cannot */
function installed(bench: Bench): string {
  const folder = `${homedir()}/.cache/hopgate-bench/peers`;
  const modules = `${folder}/node_modules`;
  const there = Object.keys(MANIFEST.dependencies).every((name) =>
    existsSync(`${modules}/${name}`),
  );
  if (there) return modules;
  bench.say(`installing the peers into ${folder}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/package.json`, JSON.stringify(MANIFEST, undefined, 2));
  const result = Bun.spawnSync(['npm', 'install', '--no-audit', '--no-fund', '--omit=dev'], {
    cwd: folder,
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: INSTALL_LIMIT_MS,
  });
  if (result.exitCode !== 0) {
    throw new Error(`npm install failed: ${result.stderr.toString().trim().slice(-300)}`);
  }
  return modules;
}

async function portkey(name: TargetName, bench: Bench): Promise<Target> {
  const modules = installed(bench);
  const port = freePort();
  const script = `${modules}/@portkey-ai/gateway/build/start-server.js`;
  const child = startChild(['node', script, `--port=${port}`, '--headless'], {
    logFile: `${bench.dir}/${name}.log`,
    env: { NODE_ENV: 'production' },
    cwd: bench.dir,
  });
  await waitForHttp(port, 15_000);
  return {
    name,
    child,
    pid: child.pid,
    port,
    version: `@portkey-ai/gateway ${PORTKEY}`,
    dialect: 'chat',
    headers: {
      authorization: 'Bearer sk-bench',
      'x-portkey-provider': name === 'portkey' ? 'openai' : 'anthropic',
      'x-portkey-custom-host': `http://127.0.0.1:${bench.mockPort}/v1`,
    },
    model: (asked) => asked,
  };
}

async function claudeCodeRouter(name: TargetName, bench: Bench): Promise<Target> {
  const modules = installed(bench);
  const port = freePort();
  const home = `${bench.dir}/${name}`;
  mkdirSync(`${home}/.claude-code-router`, { recursive: true });
  const provider = {
    name: 'mock',
    api_base_url: `http://127.0.0.1:${bench.mockPort}/v1/chat/completions`,
    api_key: 'sk-bench',
    models: ['json-1k', 'burst-100', 'burst-2000', 'paced-100x20ms'],
  };
  writeFileSync(
    `${home}/.claude-code-router/config.json`,
    JSON.stringify({
      PORT: port,
      HOST: '127.0.0.1',
      LOG: false,
      NON_INTERACTIVE_MODE: true,
      Providers: [provider],
      Router: { default: 'mock,burst-100' },
    }),
  );
  const script = `${modules}/@musistudio/claude-code-router/dist/cli.js`;
  const child = startChild(['node', script, 'start'], {
    logFile: `${bench.dir}/${name}.log`,
    env: { HOME: home },
    cwd: bench.dir,
  });
  await waitForHttp(port, 20_000);
  return {
    name,
    child,
    pid: child.pid,
    port,
    version: `@musistudio/claude-code-router ${CCR}`,
    dialect: 'messages',
    headers: { 'x-api-key': 'sk-bench', 'anthropic-version': '2023-06-01' },
    model: (asked) => `mock,${asked}`,
  };
}

/** Starts a peer. @throws where it cannot be installed or does not come up */
export function peerTarget(name: TargetName, bench: Bench): Promise<Target> {
  return name === 'ccr-conv' ? claudeCodeRouter(name, bench) : portkey(name, bench);
}
