/** The door of this room: load a configuration, watch it, and the types of what comes out. */

export type * from './config.ts';
export {
  environmentFrom,
  expandHome,
} from './environment.ts';
export { describeProblem, type Problem } from './file/problem.ts';
export {
  type Fetch,
  findConfigFile,
  type LoadResult,
  loadConfig,
  parseConfig,
  userConfig,
} from './load.ts';
export { type LiveConfig, liveConfig, type ReloadResult } from './reload.ts';
export { Secret } from './secret.ts';
export { jsonSchema } from './sections/index.ts';
