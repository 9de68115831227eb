/** The file's `memory` as the program uses it. */

import type { MemoryConfig } from '../config.ts';
import type { Path } from '../file/document.ts';
import { suggest } from '../file/suggest.ts';
import { Secret } from '../secret.ts';
import type { FileConfig } from './index.ts';
import { type Findings, ms } from './resolve-providers.ts';

/** @param path of the database, resolved */
export function resolveMemory(file: FileConfig, path: string, findings: Findings): MemoryConfig {
  const { memory } = file;
  const { embeddings, url, key, capture_url: captureUrl } = memory;
  if (embeddings !== undefined) checkProvider(file, embeddings.provider, findings);
  if (url === undefined) {
    for (const name of ['capture_url', 'key'] as const) {
      if (memory[name] !== undefined) {
        findings.problems.push({
          path: ['memory', name],
          message: 'needs the key "url" beside it',
        });
      }
    }
  } else if (embeddings !== undefined) {
    findings.warnings.push({
      path: ['memory', 'embeddings'],
      message: 'is of no use with memory.url: the external store ranks by itself',
    });
  }
  return {
    enabled: memory.enabled,
    path,
    dedupeMs: ms(memory.dedupe),
    limits: memory.limits,
    ...(embeddings === undefined
      ? {}
      : {
          embeddings: {
            provider: embeddings.provider,
            model: embeddings.model,
            ...(embeddings.dimensions === undefined ? {} : { dimensions: embeddings.dimensions }),
            timeoutMs: ms(embeddings.timeout),
          },
        }),
    ...(url === undefined
      ? {}
      : {
          external: {
            url,
            captureUrl: captureUrl ?? url,
            ...(key === undefined ? {} : { key: new Secret(key) }),
            timeoutMs: ms(memory.timeout),
          },
        }),
  };
}

function checkProvider(file: FileConfig, name: string, findings: Findings): void {
  const path: Path = ['memory', 'embeddings', 'provider'];
  if (!Object.hasOwn(file.providers, name)) {
    const suggestion = suggest(name, Object.keys(file.providers));
    findings.problems.push({ path, message: `there is no provider "${name}"`, suggestion });
  } else if (file.providers[name]?.protocol === 'anthropic-messages') {
    findings.problems.push({
      path,
      message: 'must speak an OpenAI protocol: Messages has no /embeddings',
    });
  }
}
