/** Reads the JUnit file that `bun test` writes: how many passed, failed, were skipped, and which. */

interface Failure {
  readonly name: string;
  readonly file: string;
  readonly words: string;
}

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly failures: readonly Failure[];
  readonly skips: readonly string[];
  /** They failed beside others and passed on their own. */
  readonly unsteady: readonly Failure[];
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
  const failures: Failure[] = [];
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
  return { passed, failed: failures.length, skipped: skips.length, failures, skips, unsteady: [] };
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

/** The outcome of a run after the files with failures have run once more: a test has failed that fails in `second`. */
export function withSecondRun(first: Outcome, second: Outcome): Outcome {
  const named = first.failures.filter(({ file }) => file !== '');
  const failures = [...first.failures.filter(({ file }) => file === ''), ...second.failures];
  const failsAgain = (one: Failure) =>
    second.failures.some(
      ({ name, file }) => file === '' || (name === one.name && file === one.file),
    );
  return {
    ...first,
    passed: first.passed + first.failed - failures.length,
    failed: failures.length,
    failures,
    unsteady: named.filter((one) => !failsAgain(one)),
  };
}
