/** A scratch machine for command tests: its own home, environment, streams and network. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { sampleServices } from '../../src/app/in-process.ts';
import { LINT } from '../../src/app/linters.ts';
import { checkTools } from '../../src/app/operations/check-tools.ts';
import { stateMoves } from '../../src/app/operations/state-moves.ts';
import { createApp } from '../../src/app.ts';
import type { CommandServices, Io, ServeOptions } from '../../src/cli/command.ts';
import { run } from '../../src/cli/index.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { repairBody, repairHistory } from '../../src/features/tool-pairing/index.ts';
import { fitTurnOrder } from '../../src/features/vendor-fit/index.ts';

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface World {
  readonly home: string;
  /** Runs one command line; `input` is typed at the terminal (stdin is then one). */
  run(argv: readonly string[], input?: string): Promise<Ran>;
  write(path: string, content: string): string;
  readonly variables: Record<string, string | undefined>;
  /** What `serve` was started with. */
  readonly served: ServeOptions[];
  fetch: typeof globalThis.fetch;
  tty: boolean;
  /** The width of the terminal; it counts where there is one (`tty`). */
  columns: number;
  /** How the program is started, and the system it runs on; undefined: as they are. */
  program?: readonly string[];
  platform?: string;
  remove(): void;
}

// No local servers are looked for and no vendor is asked, whatever runs on this machine.
const offline = (() => Promise.reject(new Error('offline'))) as unknown as typeof fetch;

export function createWorld(): World {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'hopgate-cli-')));
  const world: World = {
    home,
    variables: { HOME: home },
    served: [],
    fetch: offline,
    tty: false,
    columns: 100,
    write(path, content) {
      const file = join(home, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content, { mode: 0o600 });
      return file;
    },
    remove: () => rmSync(home, { recursive: true, force: true }),
    async run(argv, input) {
      let out = '';
      let err = '';
      const output = (add: (text: string) => void) => ({
        write: add,
        isTTY: world.tty,
        columns: world.columns,
      });
      const io: Io = {
        stdout: output((text) => {
          out += text;
        }),
        stderr: output((text) => {
          err += text;
        }),
        stdin: Readable.from(input === undefined ? [] : [input]),
        interactive: input !== undefined,
        environment: environmentFrom(world.variables, home),
        cwd: home,
        fetch: world.fetch,
        program: world.program,
        platform: world.platform,
      };
      const services: CommandServices = {
        serve: async (options) => {
          world.served.push(options);
          return 0;
        },
        pairing: { mend: repairBody, repair: repairHistory, fitTurns: fitTurnOrder },
        lint: LINT,
        stateMoves: async (options) => stateMoves(options),
        checkTools,
        ...sampleServices(createApp, io.environment, 'test'),
      };
      return { code: await run(argv, io, async () => services), out, err };
    },
  };
  return world;
}

/** A configuration with one provider and a route for Claude Code's names. */
export const GLM_CONFIG = `listen: 127.0.0.1:5520
providers:
  glm:
    protocol: openai-chat
    base_url: https://open.bigmodel.cn/api/paas/v4
    keys: ["0123456789abcdef0123456789abcdef.abcdefgh12345678"]
    models: [glm-4.7, glm-4.6]
routes:
  - when: { model: "claude-*" }
    to: [glm/glm-4.7]
`;
