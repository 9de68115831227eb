/** The agents that `hopgate setup` points at the gateway: what it writes is what they read. */

import { join } from 'node:path';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { binary, cleanEnv } from '../../test/support/binary.ts';
import { type Agent, MODEL } from './agent.ts';
import { installed, type Package } from './install.ts';

/** Runs `hopgate setup CLIENT` in the agent's home. @throws Error with its words */
async function setUp(client: string, base: string, home: string): Promise<void> {
  const config = join(home, 'setup.yaml');
  const vendor = { protocol: 'openai-chat', base_url: base, models: [MODEL] };
  await Bun.write(config, JSON.stringify({ providers: { vendor } }));
  const child = Bun.spawn([await binary(), 'setup', client, '--yes', '--url', base], {
    cwd: home,
    env: cleanEnv(home, { HOPGATE_CONFIG: config }),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const words = `${await new Response(child.stdout).text()}${await new Response(child.stderr).text()}`;
  if ((await child.exited) !== 0) throw new Error(words);
}

/** The last line that holds letters, without control sequences of terminals. */
const lastLine = (stdout: string): string =>
  Bun.stripANSI(stdout)
    .split('\n')
    .findLast((line) => /\p{L}/u.test(line))
    ?.trim() ?? '';

const NODE: Package = { name: 'node', version: '22.23.0' };

const node = async (): Promise<string> => join(await installed(NODE), 'node_modules/node/bin/node');

const shellTool = (tool: string) => ({
  tool,
  arguments: (command: string): JsonObject => ({ command, description: 'Writes the proof.' }),
});

const geminiCli: Agent = {
  name: 'Gemini CLI',
  package: { name: '@google/gemini-cli', version: '0.61.0' },
  runtime: NODE,
  vendors: ['openai-chat', 'anthropic-messages'],
  task: shellTool('run_shell_command'),
  async start(base, home, prompt) {
    await setUp('gemini', base, home);
    const folder = await installed(geminiCli.package);
    const program = join(folder, 'node_modules/@google/gemini-cli/bundle/gemini.js');
    return {
      command: [await node(), program, '--yolo', '--output-format', 'json', '-p', prompt],
      env: { GEMINI_CLI_TRUST_WORKSPACE: 'true', GEMINI_TELEMETRY_ENABLED: 'false' },
    };
  },
  finalText(stdout) {
    const { response } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as JsonObject;
    // What it says beside a call stands before its last words.
    return lastLine(String(response ?? ''));
  },
};

const qwenCode: Agent = {
  name: 'Qwen Code',
  package: { name: '@qwen-code/qwen-code', version: '0.24.4' },
  runtime: NODE,
  vendors: ['openai-chat', 'anthropic-messages'],
  task: shellTool('run_shell_command'),
  async start(base, home, prompt) {
    await setUp('qwen', base, home);
    const folder = await installed(qwenCode.package);
    const program = join(folder, 'node_modules/@qwen-code/qwen-code/cli-entry.js');
    return { command: [await node(), program, '--yolo', '-p', prompt], env: {} };
  },
  finalText: lastLine,
};

const openCode: Agent = {
  name: 'opencode',
  package: { name: 'opencode-ai', version: '1.18.33' },
  vendors: ['openai-chat', 'anthropic-messages'],
  task: shellTool('bash'),
  async start(base, home, prompt) {
    await setUp('opencode', base, home);
    const folder = await installed(openCode.package);
    return {
      command: [
        join(folder, 'node_modules/.bin/opencode'),
        'run',
        '-m',
        `hopgate/${MODEL}`,
        prompt,
      ],
      env: {
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        OPENCODE_PERMISSION: '{"*":"allow"}',
      },
    };
  },
  finalText: lastLine,
};

const cline: Agent = {
  name: 'Cline',
  package: { name: 'cline', version: '3.0.65' },
  vendors: ['openai-chat'],
  task: { tool: 'run_commands', arguments: (command) => ({ commands: [command] }) },
  daemon: '--cline-hub-daemon',
  async start(base, home, prompt) {
    await setUp('cline', base, home);
    const folder = await installed(cline.package);
    return {
      command: [join(folder, 'node_modules/.bin/cline'), '-t', '60', prompt],
      env: { CLINE_TELEMETRY_DISABLED: '1' },
    };
  },
  finalText: lastLine,
};

const aider: Agent = {
  name: 'aider',
  package: { name: 'aider-chat', version: '0.86.2', from: 'pypi' },
  vendors: ['openai-chat', 'anthropic-messages'],
  task: { answer: (file, text) => `I will write it.\n\n${file}\n\`\`\`\n${text}\n\`\`\`\n` },
  async start(base, home, prompt) {
    await setUp('aider', base, home);
    const folder = await installed(aider.package);
    return {
      command: [
        join(folder, 'bin/aider'),
        '--yes-always',
        '--no-git',
        '--no-check-update',
        '--no-show-release-notes',
        '--analytics-disable',
        '--no-show-model-warnings',
        '--edit-format',
        'whole',
        '--message',
        prompt,
        'proof.txt',
      ],
      env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    };
  },
  finalText: lastLine,
};

const kilo: Agent = {
  name: 'Kilo',
  // The newest whose binary the registry has as well.
  package: { name: '@kilocode/cli', version: '7.7.7' },
  vendors: ['openai-chat', 'anthropic-messages'],
  task: shellTool('bash'),
  async start(base, home, prompt) {
    await setUp('kilo', base, home);
    const folder = await installed(kilo.package);
    return {
      command: [
        join(folder, 'node_modules/.bin/kilo'),
        'run',
        '--auto',
        '-m',
        `hopgate/${MODEL}`,
        prompt,
      ],
      env: {
        KILO_DISABLE_MODELS_FETCH: '1',
        KILO_DISABLE_DEFAULT_PLUGINS: '1',
        KILO_NO_DAEMON: '1',
        KILO_TELEMETRY_LEVEL: 'off',
      },
    };
  },
  finalText: lastLine,
};

const pi: Agent = {
  name: 'pi',
  package: { name: '@earendil-works/pi-coding-agent', version: '1.6.0' },
  runtime: NODE,
  vendors: ['openai-chat', 'anthropic-messages'],
  task: shellTool('bash'),
  async start(base, home, prompt) {
    await setUp('pi', base, home);
    const folder = await installed(pi.package);
    const program = join(folder, 'node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js');
    return {
      command: [await node(), program, '--offline', '--no-session', '-p', prompt],
      env: { PI_OFFLINE: '1', PI_TELEMETRY: '0' },
    };
  },
  finalText: lastLine,
};

const grokBuild: Agent = {
  name: 'Grok Build',
  package: { name: '@xai-official/grok', version: '1.0.41' },
  vendors: ['openai-chat', 'anthropic-messages'],
  task: shellTool('run_terminal_command'),
  async start(base, home, prompt) {
    await setUp('grok', base, home);
    const folder = await installed(grokBuild.package);
    return {
      command: [join(folder, 'node_modules/.bin/grok'), '--always-approve', '-p', prompt],
      env: { GROK_TELEMETRY_ENABLED: 'false' },
    };
  },
  // What it says beside a call stands on the same line before its last words.
  finalText: (stdout) => lastLine(stdout).replace(/^.*I will write it\./, ''),
};

const kimiCode: Agent = {
  name: 'Kimi Code CLI',
  package: { name: '@moonshot-ai/kimi-code', version: '2.1.0' },
  runtime: NODE,
  vendors: ['openai-chat', 'anthropic-messages'],
  task: shellTool('Bash'),
  async start(base, home, prompt) {
    await setUp('kimi', base, home);
    const folder = await installed(kimiCode.package);
    const program = join(folder, 'node_modules/@moonshot-ai/kimi-code/dist/main.mjs');
    return { command: [await node(), program, '-p', prompt], env: {} };
  },
  finalText: (stdout) => lastLine(stdout).replace(/^• /, ''),
};

const copilot: Agent = {
  name: 'Copilot CLI',
  package: { name: '@github/copilot', version: '1.0.102' },
  vendors: ['openai-chat', 'anthropic-messages'],
  task: shellTool('bash'),
  async start(base, home, prompt) {
    await setUp('copilot', base, home);
    const folder = await installed(copilot.package);
    const program = join(folder, 'node_modules/.bin/copilot');
    const words = ['--allow-all-tools', '--no-color', '--silent', '-p', prompt];
    return {
      // What setup wrote into the profile of the shell.
      command: ['sh', '-c', '. "$HOME/.profile"; exec "$0" "$@"', program, ...words],
      env: { COPILOT_OFFLINE: 'true', COPILOT_AUTO_UPDATE: 'false' },
    };
  },
  finalText: lastLine,
};

export const SET_UP: readonly Agent[] = [
  geminiCli,
  qwenCode,
  openCode,
  kilo,
  cline,
  pi,
  grokBuild,
  kimiCode,
  copilot,
  aider,
];
