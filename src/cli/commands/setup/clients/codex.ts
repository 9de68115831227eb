/** Codex: a provider in `~/.codex/config.toml`, and the keys that choose it. */

import { join } from 'node:path';
import type { Environment } from '../../../../config/environment.ts';
import { isObject, type Json } from '../../../../lib/json/json.ts';
import { errorMessage } from '../../../command.ts';
import type { Client, FileChange, SetupPlan } from '../client.ts';
import { type Owned, putBlocks, takeBlocks, tomlString } from '../toml-block.ts';

const OWNED: Owned = {
  topKeys: ['model', 'model_provider', 'model_context_window'],
  table: 'model_providers.hopgate',
};
const KEY_VARIABLE = 'HOPGATE_API_KEY';

/** @throws Error when it is no TOML */
function parsed(text: string, what: string): Json {
  try {
    return Bun.TOML.parse(text) as Json;
  } catch (thrown) {
    throw new Error(`${what} is not valid TOML (${errorMessage(thrown)})`);
  }
}

function dig(value: Json, ...path: string[]): Json | undefined {
  let at: Json | undefined = value;
  for (const key of path) at = isObject(at) ? at[key] : undefined;
  return at;
}

export const codex: Client = {
  name: 'codex',
  title: 'Codex',

  files: [{ path: configPath, apply, strip: (text) => takeBlocks(text, OWNED) }],

  hints(plan: SetupPlan, text = '') {
    const hints: string[] = [];
    if (plan.key !== undefined) {
      hints.push(
        `Codex takes the key from a variable: export ${KEY_VARIABLE}=… in your shell profile.`,
      );
    }
    if (/^\s*profile\s*=/m.test(text)) {
      hints.push(
        'The file chooses a profile; what the profile sets wins over the model chosen here.',
      );
    }
    return hints;
  },
};

function configPath(environment: Environment): string {
  const folder = environment.variable('CODEX_HOME') ?? join(environment.userHome, '.codex');
  return join(folder, 'config.toml');
}

function apply(text = '', plan: SetupPlan): FileChange {
  if (plan.model === undefined) throw new Error('Codex needs a model: pass --model NAME');
  parsed(text, 'the file');
  const after = putBlocks(text, {
    ...OWNED,
    top: [
      ['model', tomlString(plan.model)],
      ['model_provider', tomlString('hopgate')],
      ...(plan.context === undefined
        ? []
        : [['model_context_window', String(plan.context)] as const]),
    ],
    keys: [
      ['name', tomlString('hopgate')],
      ['base_url', tomlString(`${plan.url}/v1`)],
      // Codex supports no other protocol for custom providers.
      ['wire_api', tomlString('responses')],
      // Codex refuses to start when the variable is unset, so it is named only where a key is needed.
      ...(plan.key === undefined ? [] : [['env_key', tomlString(KEY_VARIABLE)] as const]),
    ],
  });
  // The file was edited as text: check the result before it is written.
  const result = parsed(after, 'the file with the new provider');
  const good =
    dig(result, 'model') === plan.model &&
    dig(result, 'model_provider') === 'hopgate' &&
    dig(result, 'model_providers', 'hopgate', 'base_url') === `${plan.url}/v1`;
  if (!good) {
    throw new Error(
      'the file defines the provider "hopgate" in a way that cannot be edited safely',
    );
  }
  return { text: after, undo: [] };
}
