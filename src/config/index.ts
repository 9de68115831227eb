/** The public interface of the configuration: load it, reload it, and its main types. */

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
