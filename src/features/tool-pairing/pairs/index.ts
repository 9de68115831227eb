/** Pairs calls with their results: roles, server tools, index, ids, write-back, check. The steps run in this order. */

export { newIds } from './call-ids.ts';
export { type CallTable, indexCalls } from './index-calls.ts';
export { runsOf } from './runs.ts';
export { sanityPass } from './sanity.ts';
export { settleServerTools } from './server-tools.ts';
export { splitRoles } from './split-roles.ts';
export { writeBack } from './write-back.ts';
