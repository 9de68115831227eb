/** The report of the benchmark: a new run replaces its own sections and loses nothing that people wrote beside them. */

import { expect, test } from 'bun:test';
import { withEarlierSections } from '../../bench/report.ts';

test('sections that only the earlier report has stay, in their order, however often it is written', () => {
  const earlier =
    '# B\n\n## Goals\n\nold\n\n## By hand\n\na\n\n### part\n\nb\n\n## Also by hand\n\nc\n';
  const text = '# B\n\n## Goals\n\nnew\n';
  const written = withEarlierSections(text, earlier);
  expect(written).toBe(
    '# B\n\n## Goals\n\nnew\n\n## By hand\n\na\n\n### part\n\nb\n\n## Also by hand\n\nc\n',
  );
  expect(withEarlierSections(text, written)).toBe(written);
});
