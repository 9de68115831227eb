/** Which kinds of state can be moved between the files of a machine and the shared engines. */

import { join } from 'node:path';
import type { StateMoveOptions } from '../../cli/command.ts';
import { memoryMove } from '../../features/memory/moving/memory-move.ts';
import { responsesMove } from '../../features/response-store/moving/responses-move.ts';
import type { StateMove } from '../../lib/store/state-move.ts';
import { samplesMove } from '../../samples/moving/samples-move.ts';

/** Those whose engines are configured, in the order in which they are moved. */
export function stateMoves(options: StateMoveOptions): readonly StateMove[] {
  return [...conversationMoves(options), ...recordingMoves(options)];
}

/** What conversations left behind. */
function conversationMoves({ home, config, engines, to }: StateMoveOptions): readonly StateMove[] {
  const { database, seal } = engines;
  if (database === undefined) return [];
  const { enabled, external, limits, path } = config.memory;
  const own = { database, seal, to };
  return [
    responsesMove({ ...own, path: join(home, 'state', 'responses.db') }),
    ...(enabled && external === undefined ? [memoryMove({ ...own, limits, path })] : []),
  ];
}

function recordingMoves({ config, engines, to }: StateMoveOptions): readonly StateMove[] {
  const { database, objects, seal } = engines;
  if (database === undefined || objects === undefined) return [];
  return [samplesMove({ database, objects, seal, root: config.samples.dir, to })];
}
