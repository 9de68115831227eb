/** Editors: Zed, Continue (`~/.continue/config.yaml`) and Cursor. For Cursor, `setup` prints the steps and writes nothing. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../../../config/environment.ts';
import { isObject, type Json, type JsonObject } from '../../../../lib/json/json.ts';
import { type Client, namesFor } from '../client.ts';
import type { JsonEdit } from '../json-edits.ts';
import { getAt } from '../jsonc.ts';
import { jsonFile, yamlListFile } from '../settings-files.ts';

// Zed needs a window for each model; half of the vendors' models have at least this much.
const CAUTIOUS_CONTEXT = 128_000;

export const zed: Client = {
  name: 'zed',
  title: 'Zed',
  files: [
    jsonFile(
      (environment) => join(environment.configHome, 'zed', 'settings.json'),
      (plan, text) => {
        const names = namesFor(plan, 'Zed');
        const models = names.map((name): Json => {
          const known = plan.limitsOf(name);
          return {
            name,
            max_tokens: plan.contextOf(name) ?? CAUTIOUS_CONTEXT,
            ...(known?.output === undefined ? {} : { max_output_tokens: known.output }),
            capabilities: {
              tools: true,
              images: known?.input?.includes('image') === true,
              parallel_tool_calls: true,
              prompt_cache_key: false,
            },
          };
        });
        const provider = { api_url: `${plan.url}/v1`, available_models: models };
        const edits: JsonEdit[] = [[['language_models', 'openai_compatible', 'hopgate'], provider]];
        const model =
          text === undefined || text.trim() === ''
            ? undefined
            : getAt(text, ['agent', 'default_model']);
        if (plan.modelChosen || model === undefined || isOurs(model)) {
          edits.push([['agent', 'default_model'], { provider: 'hopgate', model: names[0]! }]);
        }
        return edits;
      },
    ),
  ],
  hints: (plan) => [
    plan.key === undefined
      ? 'Zed uses a provider only with a key: export HOPGATE_API_KEY=hopgate before you start it, or type any text as its key in Zed.'
      : 'Zed takes the key from its own settings page or from a variable: export HOPGATE_API_KEY=… before you start it.',
  ],
};

const isOurs = (model: Json): boolean => isObject(model) && model.provider === 'hopgate';

const folder = (environment: Environment) =>
  environment.variable('CONTINUE_GLOBAL_DIR') ?? join(environment.userHome, '.continue');

const EMPTY = 'name: My configuration\nversion: 0.0.1\nschema: v1\n';

export const continueDev: Client = {
  name: 'continue',
  title: 'Continue',
  files: [
    yamlListFile(
      'continue',
      (environment) => {
        const file = join(folder(environment), 'config.yaml');
        const older = join(folder(environment), 'config.json');
        if (!existsSync(file) && existsSync(older)) {
          throw new Error(
            `Continue still reads ${older}, and would no longer do so beside a config.yaml; let Continue convert it first`,
          );
        }
        return file;
      },
      { key: 'models', empty: EMPTY },
      (plan) =>
        namesFor(plan, 'Continue').map((model): JsonObject => {
          const context = plan.contextOf(model);
          const known = plan.limitsOf(model);
          const images = known?.input?.includes('image') === true;
          const limits = {
            ...(context === undefined ? {} : { contextLength: context }),
            ...(known?.output === undefined ? {} : { maxTokens: known.output }),
          };
          return {
            name: `hopgate: ${model}`,
            provider: 'openai',
            model,
            apiBase: `${plan.url}/v1`,
            apiKey: plan.key ?? 'hopgate',
            roles: ['chat', 'edit', 'apply'],
            capabilities: images ? ['tool_use', 'image_input'] : ['tool_use'],
            ...(Object.keys(limits).length === 0 ? {} : { defaultCompletionOptions: limits }),
          };
        }),
    ),
  ],
  hints: () => ['Choose the model in Continue: its list of models has it as "hopgate: …".'],
};

/** Cursor keeps its settings in a database of its own. */
export const cursor: Client = {
  name: 'cursor',
  title: 'Cursor',
  files: [],
  hints(plan) {
    const steps = [
      `In Cursor: Settings, Models, API Keys. Switch "OpenAI API Key" on and type the key${plan.key === undefined ? ', any text' : ''}; switch "Override OpenAI Base URL" on and type ${plan.url}/v1.`,
      `Add as custom models: ${namesFor(plan, 'Cursor').join(', ')}.`,
    ];
    // https://forum.cursor.com/t/159298 shows the requests; they come from Cursor's servers, not from the editor.
    const { protocol, hostname } = new URL(plan.url);
    if (protocol === 'http:' || /^(localhost|127\.|10\.|192\.168\.|\[)/.test(hostname)) {
      steps.push(
        `Cursor's servers send the requests, not your machine: ${plan.url} must be an https: address that they can reach. Pass it with --url.`,
      );
    }
    steps.push(
      'Cursor CLI ("cursor-agent") has no such setting and cannot use another address.',
      'Undo it there as well: switch "Override OpenAI Base URL" off.',
    );
    return steps;
  },
};
