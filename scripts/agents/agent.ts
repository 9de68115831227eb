/** The coding agents that are run, each with its package, its start and the tool it writes files with. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../src/lib/json.ts';
import { installed, type Package } from './install.ts';

export interface Start {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface Agent {
  readonly name: string;
  readonly package: Package;
  /** The tool that is called, and its arguments for running a shell command. */
  readonly tool: string;
  readonly arguments: (shell: string) => JsonObject;
  /** How to run it headless: `base` is the gateway, `home` its own fresh home. */
  readonly start: (base: string, home: string, prompt: string) => Promise<Start>;
  /** The agent's final words in what it printed. */
  readonly finalText: (stdout: string) => string;
}

/** The lines of a JSON-lines output that parse. */
function events(stdout: string): JsonObject[] {
  return stdout.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as JsonObject];
    } catch {
      return [];
    }
  });
}

/** The agents ask for this model; it is none of their own vendor's, which is the harder case. */
export const MODEL = 'glm-4.6';

const claudeCode: Agent = {
  name: 'Claude Code',
  package: { name: '@anthropic-ai/claude-code', version: '2.1.330' },
  tool: 'Bash',
  arguments: (command) => ({ command, description: 'Write the proof' }),
  start: async (base, _home, prompt) => {
    const folder = await installed(claudeCode.package);
    return {
      command: [
        nativeClaude(folder),
        '-p',
        prompt,
        '--output-format',
        'stream-json',
        '--verbose',
        '--dangerously-skip-permissions',
        '--model',
        MODEL,
      ],
      env: {
        ANTHROPIC_BASE_URL: base,
        ANTHROPIC_AUTH_TOKEN: 'sk-test',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        DISABLE_AUTOUPDATER: '1',
        // Skipping permissions as root is refused outside a sandbox.
        IS_SANDBOX: '1',
      },
    };
  },
  finalText: (stdout) =>
    String(events(stdout).findLast((event) => event.type === 'result')?.result ?? ''),
};

/** The native binary of this platform: the package's own starter wants a newer Node. */
function nativeClaude(folder: string): string {
  const modules = join(folder, 'node_modules');
  const found = [
    ...new Bun.Glob('@anthropic-ai/claude-code-*/claude').scanSync({ cwd: modules }),
  ].map((path) => join(modules, path));
  const musl = existsSync('/etc/alpine-release');
  return (
    found.find((path) => path.includes('-musl') === musl) ??
    found[0] ??
    join(modules, '.bin/claude')
  );
}

const codex: Agent = {
  name: 'Codex',
  package: { name: '@openai/codex', version: '0.169.0' },
  tool: 'exec_command',
  arguments: (cmd) => ({ cmd }),
  start: async (base, home, prompt) => {
    const folder = await installed(codex.package);
    await Bun.write(
      join(home, '.codex/config.toml'),
      [
        `model = "${MODEL}"`,
        'model_provider = "gateway"',
        'approval_policy = "never"',
        'sandbox_mode = "danger-full-access"',
        '[analytics]',
        'enabled = false',
        '[model_providers.gateway]',
        'name = "gateway"',
        `base_url = "${base}/v1"`,
        'env_key = "GATEWAY_KEY"',
        'wire_api = "responses"',
        '',
      ].join('\n'),
    );
    return {
      command: [
        join(folder, 'node_modules/.bin/codex'),
        'exec',
        '--json',
        '--skip-git-repo-check',
        prompt,
      ],
      env: { CODEX_HOME: join(home, '.codex'), GATEWAY_KEY: 'sk-test' },
    };
  },
  finalText: (stdout) =>
    String(
      events(stdout)
        .map((event) => event.item as JsonObject | undefined)
        .findLast((item) => item?.type === 'agent_message')?.text ?? '',
    ),
};

export const AGENTS: readonly Agent[] = [claudeCode, codex];
