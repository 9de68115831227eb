/** Claude Desktop in its third-party mode: a profile in its library, the profile chosen, and the mode. */

import { join } from 'node:path';
import type { Environment } from '../../../../config/environment.ts';
import type { Client, SetupPlan } from '../client.ts';
import { jsonFile } from '../settings-files.ts';

// claude.com/docs/third-party/claude-desktop/configuration; what "Apply locally" writes: LiteLLM-Labs/litellm-relay#31.

/** Any UUID; always the same, so that a second setup finds its profile. */
const PROFILE = 'f0b6c5a2-6a0e-4f57-9d0b-5a3f1c7e5520';

/** The names that the picker shows: it takes no others. */
const FAMILIES = ['opus', 'sonnet', 'haiku'];

const LONG = 1_000_000;

function appFolder(environment: Environment): string {
  if (process.platform === 'darwin') {
    return join(environment.userHome, 'Library', 'Application Support');
  }
  return process.platform === 'win32'
    ? (environment.variable('LOCALAPPDATA') ?? join(environment.userHome, 'AppData', 'Local'))
    : environment.configHome;
}

const inApp =
  (...names: readonly string[]) =>
  (environment: Environment) =>
    join(appFolder(environment), ...names);

const mode = (folder: string) =>
  jsonFile(inApp(folder, 'claude_desktop_config.json'), () => [[['deploymentMode'], '3p']]);

/** @throws Error when there is none */
function nameOf(model: string, { claudeNameOf }: SetupPlan): string {
  const name = claudeNameOf(model);
  if (name !== undefined) return name;
  throw new Error(
    `it shows only models whose names begin with "claude-", not "${model}". Set "model_list.claude_aliases: true" in the configuration, or leave --model out where a route takes claude-*`,
  );
}

export const claudeDesktop: Client = {
  name: 'claude-desktop',
  title: 'Claude Desktop',
  asksForClaude: true,
  files: [
    jsonFile(inApp('Claude-3p', 'configLibrary', `${PROFILE}.json`), (plan) => {
      const { protocol, hostname } = new URL(plan.url);
      if (protocol !== 'https:' && hostname !== '127.0.0.1') {
        throw new Error(
          `it takes only https: or http://127.0.0.1 as an address, not ${plan.url}; pass another with --url`,
        );
      }
      const names =
        plan.model === undefined
          ? FAMILIES.map((family) => `claude-${family}-5-5`).filter(plan.serves)
          : [nameOf(plan.model, plan)];
      const label = plan.model ?? plan.answeringModel;
      const models = names.map((name) => {
        const tier = FAMILIES.find((family) => name.includes(family));
        return {
          name,
          ...(label === undefined || label === name ? {} : { labelOverride: `hopgate: ${label}` }),
          ...(tier === undefined ? {} : { anthropicFamilyTier: tier, isFamilyDefault: true }),
          ...((plan.context ?? 0) >= LONG ? { supports1m: true } : {}),
        };
      });
      return [
        [['inferenceProvider'], 'gateway'],
        [['inferenceGatewayBaseUrl'], plan.url],
        [['inferenceGatewayApiKey'], plan.key ?? 'hopgate'],
        [['inferenceGatewayAuthScheme'], 'bearer'],
        [['modelDiscoveryEnabled'], false],
        [['inferenceModels'], models],
      ];
    }),
    jsonFile(inApp('Claude-3p', 'configLibrary', '_meta.json'), () => [
      [['entries'], { id: PROFILE, name: 'hopgate' }, 'item'],
      [['appliedId'], PROFILE],
    ]),
    mode('Claude-3p'),
    mode('Claude'),
  ],
  hints: () => [
    'Quit Claude Desktop before this and start it again afterwards: it writes its settings when it ends.',
    'Chat on claude.ai is not there in this mode; Cowork and Code are.',
  ],
};
