/** The door of this room: load a configuration, watch it, and the types of what comes out. */

export type * from './config.ts';
export {
  environmentFrom,
  expandHome,
} from './environment.ts';
export {
  type Fetch,
  findConfigFile,
  type LoadResult,
  loadConfig,
  parseConfig,
  userConfig,
} from './load.ts';
export { describeProblem, type Problem } from './problem.ts';
export { type LiveConfig, liveConfig, type ReloadResult } from './reload.ts';
export { jsonSchema } from './schema.ts';
export { Secret } from './secret.ts';
