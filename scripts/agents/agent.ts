/** A coding agent as these runs see it, and those that are pointed at the gateway by hand: Claude Code and Codex. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../src/lib/json/json.ts';
import type { Protocol } from '../../test/support/fake-upstream/index.ts';
import { installed, type Package } from './install.ts';

export interface Start {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface Agent {
  readonly name: string;
  readonly package: Package;
  /** The runtime that it needs, where the one of this machine may be too old. */
  readonly runtime?: Package;
  /** What its vendor may speak in the tool loop. */
  readonly vendors: readonly Protocol[];
  /** What the vendor lets it do. */
  readonly task: Task;
  /** How to run it headless: `base` is the gateway, `home` its own fresh home. */
  readonly start: (base: string, home: string, prompt: string) => Promise<Start>;
  /** The agent's final words in what it printed. */
  readonly finalText: (stdout: string) => string;
  /** Left out: its search is not tried. */
  readonly search?: Search;
  /** What it leaves running, by a word in its command line. */
  readonly daemon?: string;
  /** It compacts its conversations by the API. */
  readonly compacts?: boolean;
  /** It asks on a WebSocket, and must not fall back. */
  readonly websocket?: boolean;
}

/** How a model makes the agent write a file. */
export type Task =
  | {
      /** The tool that is called, and its arguments for running a shell command. */
      readonly tool: string;
      readonly arguments: (shell: string) => JsonObject;
    }
  /** An agent without tools: the answer that makes it write this text into this file. */
  | { readonly answer: (file: string, text: string) => string };

/** How the agent searches the web. */
export interface Search {
  /** The tool that its model calls in the main conversation. */
  readonly tool: string;
  /** What it needs to have that tool at hand. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Looks for the search in what the agent printed.
   * @returns what is amiss, or undefined
   */
  readonly complaint: (
    stdout: string,
    query: string,
    links: readonly string[],
  ) => string | undefined;
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

const ALL: readonly Protocol[] = ['openai-chat', 'openai-responses', 'anthropic-messages'];

const claudeCode: Agent = {
  name: 'Claude Code',
  package: { name: '@anthropic-ai/claude-code', version: '2.1.332' },
  vendors: ALL,
  task: {
    tool: 'Bash',
    arguments: (command) => ({ command, description: 'Write the proof' }),
  },
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
  search: {
    tool: 'WebSearch',
    // The tool is there from the start, without a search for tools before.
    env: { ENABLE_TOOL_SEARCH: 'false' },
    complaint: (stdout, _query, links) => {
      const results = stdout.split('\n').filter((line) => line.includes('"tool_result"'));
      const found = results.find((line) => line.includes('Links: '));
      if (found === undefined) return 'no result of WebSearch holds "Links:"';
      const missing = links.find((link) => !found.includes(link));
      return missing === undefined ? undefined : `the links do not hold ${missing}`;
    },
  },
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

const CODEX: Package = { name: '@openai/codex', version: '0.171.0' };

/** Codex with its own provider, whose address is the gateway's. @param more lines of its configuration */
export const codexBuiltIn = (more: readonly string[]): Agent => ({
  ...codex,
  name: 'Codex, built-in provider',
  websocket: true,
  start: async (base, home, prompt) => {
    const { command } = await codex.start(base, home, prompt);
    await Bun.write(
      join(home, '.codex/config.toml'),
      [
        'model = "gpt-5.1-codex"',
        `openai_base_url = "${base}/v1"`,
        'approval_policy = "never"',
        'sandbox_mode = "danger-full-access"',
        ...more,
        '[analytics]',
        'enabled = false',
        '',
      ].join('\n'),
    );
    return { command, env: { CODEX_HOME: join(home, '.codex'), CODEX_API_KEY: 'sk-test' } };
  },
});

/** @param more lines of the provider's entry */
const codexWith = (name: string, more: readonly string[]): Agent => ({
  name,
  package: CODEX,
  vendors: ALL,
  task: { tool: 'exec_command', arguments: (cmd) => ({ cmd }) },
  start: async (base, home, prompt) => {
    const folder = await installed(CODEX);
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
        ...more,
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
  search: {
    tool: 'web_search',
    env: {},
    complaint: (stdout, query) => {
      const types = events(stdout)
        .filter((event) => event.type === 'item.completed')
        .map((event) => event.item as JsonObject);
      const searched = types.findIndex((item) => item.type === 'web_search');
      if (searched < 0) return 'no web_search item was heard';
      if (types[searched]?.query !== query) return `searched: ${JSON.stringify(types[searched])}`;
      const answered = types.findLastIndex((item) => item.type === 'agent_message');
      return answered > searched ? undefined : 'no answer came behind the search';
    },
  },
});

const codex = codexWith('Codex', []);
const codexOnSocket: Agent = {
  ...codexWith('Codex over WebSocket', ['supports_websockets = true']),
  compacts: true,
  websocket: true,
};

export const BY_HAND: readonly Agent[] = [claudeCode, codex, codexOnSocket];
