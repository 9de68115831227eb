/** Reads the JUnit file that `bun test` writes: how many passed, failed, were skipped, and which. */

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly failures: readonly { name: string; file: string; words: string }[];
  readonly skips: readonly string[];
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&#39;': "'",
  '&#10;': '\n',
  '&amp;': '&',
};
const plain = (text: string) =>
  text.replace(/&(?:lt|gt|quot|apos|amp|#39|#10);/g, (one) => ENTITIES[one]!);

const attribute = (attributes: string, name: string) =>
  plain(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '');

/** The outcome in a JUnit document; every `testcase` counts once. */
export function readJunit(xml: string): Outcome {
  let passed = 0;
  const skips: string[] = [];
  const failures: Outcome['failures'][number][] = [];
  for (const [, attributes, body] of xml.matchAll(
    /<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  )) {
    const group = attribute(attributes!, 'classname');
    const name = [group, attribute(attributes!, 'name')].filter(Boolean).join(' > ');
    const file = attribute(attributes!, 'file');
    const bad = /<(?:failure|error)\b([^>]*?)(?:\/>|>([\s\S]*?)<\/(?:failure|error)>)/.exec(
      body ?? '',
    );
    if (bad !== null) {
      const words = plain(bad[2] ?? '').trim() || attribute(bad[1]!, 'message');
      failures.push({ name, file, words });
    } else if (/<skipped\b/.test(body ?? '')) skips.push(name);
    else passed++;
  }
  return { passed, failed: failures.length, skipped: skips.length, failures, skips };
}

/**
 * Adds what the JUnit file does not tell: files that did not load (each counts as one failure), and
 * a run that ended badly without a failing test.
 */
export function withRunErrors(outcome: Outcome, output: string, code: number): Outcome {
  const unloaded = output.split('\n# Unhandled error between tests\n').slice(1);
  const words =
    unloaded.length === 0 && outcome.failed === 0 && code !== 0
      ? [`bun test ended with code ${code}`]
      : unloaded.map((text) => text.split(/^-{10,}$/m)[1] ?? text.slice(0, 400));
  const more = words.map((one) => ({ name: 'outside of any test', file: '', words: one.trim() }));
  return {
    ...outcome,
    failed: outcome.failed + more.length,
    failures: [...outcome.failures, ...more],
  };
}
