/** GitHub Copilot CLI reads its provider only from environment variables, so `setup` writes a file that the shell loads. */

import { join } from 'node:path';
import type { Environment } from '../../../../config/environment.ts';
import { shellQuoted } from '../../../../lib/text/quoted-words.ts';
import { type Client, modelFor } from '../client.ts';
import { linesFile } from '../settings-files.ts';

/** Left free for the answer where the model's limit is not known. */
const MAX_OUTPUT = 16_384;

const PROFILES: Readonly<Record<string, string>> = {
  zsh: '.zshrc',
  bash: process.platform === 'darwin' ? '.bash_profile' : '.bashrc',
  fish: '.config/fish/config.fish',
};

function profile(environment: Environment): string {
  const shell = environment.variable('SHELL')?.split('/').at(-1) ?? '';
  const folder = shell === 'zsh' ? environment.variable('ZDOTDIR') : undefined;
  return join(folder ?? environment.userHome, PROFILES[shell] ?? '.profile');
}

/** A word in single quotes: the same to sh, bash, zsh and fish. */

export const copilot: Client = {
  name: 'copilot',
  title: 'GitHub Copilot CLI',
  // Its Chat client breaks on `reasoning_content` (github/copilot-cli#4196).
  protocols: ['openai-responses', 'anthropic-messages'],
  files: [
    linesFile('copilot', ({ userHome }) => join(userHome, '.copilot', 'hopgate.sh'), {
      variables(plan) {
        const model = modelFor(plan, 'Copilot CLI');
        const messages = plan.protocol === 'anthropic-messages';
        const context = plan.contextOf(model);
        const output = Math.min(
          plan.limitsOf(model)?.output ?? MAX_OUTPUT,
          Math.floor((context ?? Number.POSITIVE_INFINITY) / 4),
        );
        return {
          COPILOT_PROVIDER_BASE_URL: messages ? plan.url : `${plan.url}/v1`,
          COPILOT_PROVIDER_TYPE: messages ? 'anthropic' : 'openai',
          ...(messages ? {} : { COPILOT_PROVIDER_WIRE_API: 'responses' }),
          COPILOT_PROVIDER_API_KEY: plan.key ?? 'hopgate',
          COPILOT_MODEL: model,
          ...(context === undefined
            ? {}
            : {
                COPILOT_PROVIDER_MAX_PROMPT_TOKENS: String(context - output),
                COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: String(output),
              }),
        };
      },
      lines: (values) =>
        Object.entries(values).map(([name, value]) => `export ${name}=${shellQuoted(value)}`),
    }),
    linesFile('copilot', profile, {
      variables: () => ({}),
      lines: () => ['. "$HOME/.copilot/hopgate.sh"'],
    }),
  ],
  hints: () => [
    'Open a new shell: Copilot CLI takes its provider from variables, which the profile of the shell reads from ~/.copilot/hopgate.sh.',
    'With COPILOT_OFFLINE=true it asks nothing of GitHub.',
  ],
};
