/** Which kinds of state can be moved between the files of a machine and the shared engines. */

import { hostname } from 'node:os';
import { join } from 'node:path';
import type { StateMoveOptions } from '../../cli/command.ts';
import { MOVED_OBJECTS } from '../../endpoints/batches/vendor-objects.ts';
import { memoryMove } from '../../features/memory/move.ts';
import { responsesMove } from '../../features/response-store/move.ts';
import { localActor } from '../../keys/key-changes.ts';
import { auditMove, keysMove } from '../../keys/move.ts';
import { budgetsMove } from '../../limits/budgets-move.ts';
import { spendMove } from '../../money/move.ts';
import { samplesMove } from '../../samples/replicas/move.ts';
import type { StateMove } from '../../state/move/paged-move.ts';
import { tableMove } from '../../state/move/table-move.ts';
import { vendorObjectsPath } from './vendor-objects.ts';

/** Those whose engines are configured, in the order in which they are moved. */
export function stateMoves(options: StateMoveOptions): readonly StateMove[] {
  return [...moneyMoves(options), ...conversationMoves(options), ...recordingMoves(options)];
}

/** Who may ask, and what was used. */
function moneyMoves({ home, config, engines, to }: StateMoveOptions): readonly StateMove[] {
  const { cache, database } = engines;
  if (database === undefined) return [];
  const path = (name: string) => join(home, 'state', name);
  const keys = { database, cache, path: path('keys.db'), to, actor: localActor() };
  const budgets = { database, path: path('limits.db'), to };
  const { keepDays } = config.spend;
  const spend = { database, path: path('spend.db'), to, keepDays, replica: hostname() };
  return [keysMove(keys), auditMove(keys), budgetsMove(budgets), spendMove(spend)];
}

/** What conversations left behind. */
function conversationMoves({ home, config, engines, to }: StateMoveOptions): readonly StateMove[] {
  const { database, seal } = engines;
  if (database === undefined) return [];
  const { enabled, external, limits, path } = config.memory;
  const own = { database, seal, to };
  return [
    responsesMove({ ...own, path: join(home, 'state', 'responses.db') }),
    tableMove(MOVED_OBJECTS, { ...own, path: vendorObjectsPath(home) }),
    ...(enabled && external === undefined ? [memoryMove({ ...own, limits, path })] : []),
  ];
}

function recordingMoves({ config, engines, to }: StateMoveOptions): readonly StateMove[] {
  const { database, objects, seal } = engines;
  if (database === undefined || objects === undefined) return [];
  return [samplesMove({ database, objects, seal, root: config.samples.dir, to })];
}
