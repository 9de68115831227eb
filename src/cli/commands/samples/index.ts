/** `hopgate samples`: looks through recorded exchanges, while a gateway records or not. */

import { type Invocation, UsageError } from '../../command.ts';
import { samplesOf } from './book.ts';
import { exportSamples, importSamples } from './carry.ts';
import { runDiff } from './diff.ts';
import { runList } from './list.ts';
import { runShow } from './show.ts';

const ACTIONS = {
  list: runList,
  show: runShow,
  diff: runDiff,
  export: exportSamples,
  import: importSamples,
};

/** Exit 0; 1 when the configuration or a file cannot be used. */
export async function runSamples(invocation: Invocation): Promise<number> {
  const [action = 'list', ...rest] = invocation.arguments;
  if (!Object.hasOwn(ACTIONS, action)) throw new UsageError(`There is no "samples ${action}".`);
  const samples = await samplesOf(invocation);
  if (samples === undefined) return 1;
  const { book, config } = samples;
  try {
    return await ACTIONS[action as keyof typeof ACTIONS](book, rest, invocation, config);
  } finally {
    book.close();
  }
}
