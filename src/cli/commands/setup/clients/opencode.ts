/** opencode, and Kilo, which is made from it: a provider with its models in `opencode.json` or `kilo.json`. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../../../config/environment.ts';
import type { ProtocolName } from '../../../../conversation/types.ts';
import type { Json } from '../../../../lib/json/json.ts';
import { type Client, namesFor, type SetupPlan } from '../client.ts';
import type { JsonEdit } from '../json-edits.ts';
import { getAt } from '../jsonc.ts';
import { jsonFile } from '../settings-files.ts';

/** The AI SDK package for each protocol; all are bundled. */
const PACKAGES: Readonly<Record<ProtocolName, string>> = {
  'openai-chat': '@ai-sdk/openai-compatible',
  'openai-responses': '@ai-sdk/openai',
  'anthropic-messages': '@ai-sdk/anthropic',
  'google-gemini': '@ai-sdk/google',
};

interface Names {
  readonly name: 'opencode' | 'kilo';
  readonly title: string;
  /** The beginning of its variables. */
  readonly variables: string;
  readonly schema: string;
}

const client = ({ name, title, variables, schema }: Names): Client => ({
  name,
  title,
  protocols: Object.keys(PACKAGES) as ProtocolName[],
  files: [
    jsonFile(
      (environment) => configPath(environment, name, variables),
      (plan, text) => edits(plan, text, { title, schema }),
    ),
  ],
  hints: (plan) => [
    `Try it: ${name} run -m hopgate/${plan.model ?? plan.models[0] ?? 'MODEL'} "hello"`,
  ],
});

export const opencode = client({
  name: 'opencode',
  title: 'opencode',
  variables: 'OPENCODE',
  schema: 'https://opencode.ai/config.json',
});

export const kilo = client({
  name: 'kilo',
  title: 'Kilo',
  variables: 'KILO',
  schema: 'https://app.kilo.ai/config.json',
});

function configPath(environment: Environment, name: string, variables: string): string {
  const named = environment.variable(`${variables}_CONFIG`);
  if (named !== undefined) return named;
  const folder =
    environment.variable(`${variables}_CONFIG_DIR`) ?? join(environment.configHome, name);
  const commented = join(folder, `${name}.jsonc`);
  return existsSync(commented) ? commented : join(folder, `${name}.json`);
}

function edits(
  plan: SetupPlan,
  text: string | undefined,
  { title, schema }: { readonly title: string; readonly schema: string },
): readonly JsonEdit[] {
  const names = namesFor(plan, title);
  const models: Record<string, Json> = {};
  for (const name of names) {
    const context = plan.contextOf(name);
    models[name] =
      context === undefined
        ? { name }
        : { name, limit: { context, output: plan.limitsOf(name)?.output ?? 32_000 } };
  }
  const provider: Json = {
    npm: PACKAGES[plan.protocol ?? 'openai-chat'],
    name: 'hopgate',
    options: { baseURL: `${plan.url}/v1`, apiKey: plan.key ?? 'hopgate' },
    models,
  };
  const list: JsonEdit[] = [[['provider', 'hopgate'], provider]];
  if (text === undefined) list.unshift([['$schema'], schema]);
  const hasModel = text !== undefined && text.trim() !== '' && getAt(text, ['model']) !== undefined;
  if (plan.modelChosen || !hasModel) list.push([['model'], `hopgate/${plan.model ?? names[0]!}`]);
  return list;
}
