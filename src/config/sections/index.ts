/** The schema of `hopgate.yaml`: the one source of its keys, their types, defaults and descriptions. */

import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { CONFIG_VERSION, OLDEST_VERSION } from '../file/migrations.ts';
import {
  byDefault,
  choice,
  closed,
  flag,
  named,
  optional,
  seconds,
  text,
} from '../file/schema-words.ts';
import { profileFacts } from '../vendors/profile-schema.ts';
import { auth, categories, conversation, limits, samples, serverTools } from './features.ts';
import { memory } from './memory.ts';
import { PROVIDER_NAME, provider, retry, timeouts } from './providers.ts';
import { routeRule } from './routes.ts';

export const DEFAULT_LISTEN = '127.0.0.1:5520';

export const fileSchema = closed(
  {
    version: byDefault(
      Type.Integer({
        minimum: OLDEST_VERSION,
        description: `Of the form of this file; the newest is ${CONFIG_VERSION}. An older file is read as what it would be today, "hopgate migrate" writes it so; a newer one is refused.`,
      }),
      OLDEST_VERSION,
    ),
    listen: byDefault(
      Type.Union([Type.Integer({ minimum: 0, maximum: 65535 }), Type.String({ minLength: 1 })], {
        description: 'Address and port, "127.0.0.1:5520"; a port alone means loopback.',
      }),
      DEFAULT_LISTEN,
    ),
    providers: byDefault(named(provider, 'Upstreams by name.', PROVIDER_NAME), {}),
    routes: byDefault(
      Type.Array(routeRule, { description: 'Rules; the first one that matches decides.' }),
      [],
    ),
    aliases: byDefault(
      named(text('provider/model, a model name, or another alias.'), 'Other names for models.'),
      {},
    ),
    model_list: byDefault(
      closed(
        {
          claude_aliases: byDefault(
            flag(
              'Also list every model as claude-<provider>/<model>, for clients that show only names that begin with claude.',
            ),
            false,
          ),
        },
        'What GET /v1/models shows.',
      ),
      {},
    ),
    categories: byDefault(categories, {}),
    profiles: byDefault(
      named(
        closed(
          {
            extends: optional(
              text('The profile that this one begins as.'),
              'the built-in one of the same name, if any',
            ),
            ...profileFacts,
            models: optional(
              named(
                closed(profileFacts, 'Facts about these models.'),
                'Facts by glob of model names, later ones over earlier ones.',
              ),
              'the same facts for all models',
            ),
          },
          'Facts about a vendor.',
        ),
        'Vendor quirks by name, laid over the built-in ones.',
      ),
      {},
    ),
    auth: byDefault(auth, {}),
    timeouts: byDefault(timeouts, {}),
    retry: byDefault(retry, {}),
    limits: byDefault(limits, {}),
    keep_alive: byDefault(
      seconds("Seconds of silence on a client's stream after which a ping is sent; 0 = never."),
      15,
    ),
    workers: byDefault(
      Type.Integer({ minimum: 1, maximum: 256, description: 'Processes that share the port.' }),
      1,
    ),
    validate: byDefault(
      choice(
        ['off', 'sample', 'all'],
        'Checks streams as clients get them against their protocol: none, one in twenty, or all. A violation is logged and counted, never repaired.',
      ),
      'off',
    ),
    samples: byDefault(samples, {}),
    server_tools: byDefault(serverTools, {}),
    memory: byDefault(memory, {}),
    conversation: byDefault(conversation, {}),
    log: byDefault(
      closed(
        {
          level: byDefault(
            choice(['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'What is logged.'),
            'info',
          ),
          format: byDefault(
            choice(['auto', 'json', 'pretty'], 'auto = pretty on a terminal, else JSON lines.'),
            'auto',
          ),
        },
        'Logs, on stderr.',
      ),
      {},
    ),
  },
  'The configuration of hopgate.',
);

/** The file's content once defaults are filled in. */
export type FileConfig = Static<typeof fileSchema>;

/** A JSON Schema (draft 2020-12) of the file, for editors. */
export function jsonSchema(): Record<string, unknown> {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'hopgate.yaml',
    ...(plain(fileSchema) as Record<string, unknown>),
  };
}

/** Literals in a union as `enum`, which editors complete better; TypeBox's symbols fall away. */
function plain(node: TSchema | unknown): unknown {
  if (Array.isArray(node)) return node.map(plain);
  if (typeof node !== 'object' || node === null) return node;
  const { anyOf, ...rest } = node as { anyOf?: { const?: unknown }[] };
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(rest)) out[key] = plain(value);
  if (anyOf === undefined) return out;
  return anyOf.every((branch) => branch.const !== undefined)
    ? { ...out, type: 'string', enum: anyOf.map((branch) => branch.const) }
    : { ...out, anyOf: anyOf.map(plain) };
}
