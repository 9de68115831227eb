/** Gemini CLI: the address in `~/.gemini/.env`, and the way it signs in in `settings.json`. */

import { join } from 'node:path';
import type { Environment } from '../../../../config/environment.ts';
import type { Client } from '../client.ts';
import type { JsonEdit } from '../json-edits.ts';
import { jsonFile, linesFile } from '../settings-files.ts';

// Gemini CLI takes every model for one of this window, and compresses at half of it.
const ASSUMED_CONTEXT = 1_048_576;
const COMPRESSES_AT = 0.5;
/** Share of the true window, so that an answer still fits. */
const FULL = 0.7;

const inFolder = (file: string) => (environment: Environment) =>
  join(environment.variable('GEMINI_CLI_HOME') ?? environment.userHome, '.gemini', file);

export const gemini: Client = {
  name: 'gemini',
  title: 'Gemini CLI',
  files: [
    linesFile('gemini', inFolder('.env'), {
      variables: (plan) => ({
        GOOGLE_GEMINI_BASE_URL: plan.url,
        GEMINI_API_KEY: plan.key ?? 'hopgate',
        ...(plan.model === undefined ? {} : { GEMINI_MODEL: plan.model }),
      }),
      lines: (values) =>
        Object.entries(values).map(([name, value]) => `${name}=${JSON.stringify(value)}`),
    }),
    jsonFile(inFolder('settings.json'), ({ context }) => {
      const edits: JsonEdit[] = [[['security', 'auth', 'selectedType'], 'gemini-api-key']];
      if (context !== undefined && context * FULL < ASSUMED_CONTEXT * COMPRESSES_AT) {
        const share = Math.round((context * FULL * 10_000) / ASSUMED_CONTEXT) / 10_000;
        edits.push([['model', 'compressionThreshold'], share]);
      }
      return edits;
    }),
  ],
  hints(plan) {
    const hints = [
      'A .env file in the folder of a project hides the one that was written: Gemini CLI reads the nearest one alone.',
      'Gemini CLI reads ~/.gemini/.env only in folders that it trusts; elsewhere it asks for a GEMINI_API_KEY. Trust the folder when it asks. In a script, set GEMINI_CLI_TRUST_WORKSPACE=true.',
    ];
    const { protocol, hostname } = new URL(plan.url);
    if (protocol === 'http:' && !/^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname)) {
      hints.push('Gemini CLI refuses http: for addresses other than localhost; use https.');
    }
    return hints;
  },
};
