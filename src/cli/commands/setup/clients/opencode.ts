/** opencode: a provider with its models in `opencode.json`. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../../../config/environment.ts';
import type { Json } from '../../../../lib/json/json.ts';
import { type Client, type FileChange, namesFor, type SetupPlan } from '../client.ts';
import { applyEdits, type JsonEdit, stripEdits } from '../json-edits.ts';
import { getAt } from '../jsonc.ts';

/** The AI SDK package for each protocol; all three are bundled with opencode. */
const PACKAGES: Readonly<Record<string, string>> = {
  'openai-chat': '@ai-sdk/openai-compatible',
  'openai-responses': '@ai-sdk/openai',
  'anthropic-messages': '@ai-sdk/anthropic',
  'google-gemini': '@ai-sdk/google',
};

export const opencode: Client = {
  name: 'opencode',
  title: 'opencode',

  files: [{ path: configPath, apply, strip: stripEdits }],

  hints: (plan) => [
    `Try it: opencode run -m hopgate/${plan.model ?? plan.models[0] ?? 'MODEL'} "hello"`,
  ],
};

function configPath(environment: Environment): string {
  const named = environment.variable('OPENCODE_CONFIG');
  if (named !== undefined) return named;
  const directory =
    environment.variable('OPENCODE_CONFIG_DIR') ?? join(environment.configHome, 'opencode');
  const commented = join(directory, 'opencode.jsonc');
  return existsSync(commented) ? commented : join(directory, 'opencode.json');
}

function apply(text: string | undefined, plan: SetupPlan): FileChange {
  const names = namesFor(plan, 'opencode');
  const models: Record<string, Json> = {};
  for (const name of names) {
    const context = plan.contextOf(name);
    models[name] =
      context === undefined
        ? { name }
        : { name, limit: { context, output: plan.limitsOf(name)?.output ?? 32_000 } };
  }
  const provider: Json = {
    npm: PACKAGES[plan.protocol ?? 'openai-chat']!,
    name: 'hopgate',
    options: { baseURL: `${plan.url}/v1`, apiKey: plan.key ?? 'hopgate' },
    models,
  };
  const edits: JsonEdit[] = [[['provider', 'hopgate'], provider]];
  if (text === undefined) edits.unshift([['$schema'], 'https://opencode.ai/config.json']);
  const hasModel = text !== undefined && text.trim() !== '' && getAt(text, ['model']) !== undefined;
  if (plan.modelChosen || !hasModel) edits.push([['model'], `hopgate/${plan.model ?? names[0]!}`]);
  return applyEdits(text, edits);
}
