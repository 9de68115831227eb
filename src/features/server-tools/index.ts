/** Server tools: functions that models call and this gateway runs, with what the wiring needs of them. */

export { type HopEntry, type HopLedger, memoryLedger, openHopLedger } from './hop-ledger.ts';
export { liveRegistry } from './live-registry.ts';
export { checkHostedTools, checkTool, permittedTools } from './permitted-tools.ts';
export { type ToolRegistry, toolRegistry } from './registry.ts';
export { mayDeclareHosted, type ServerToolsFeature, serverTools } from './server-tools.ts';
export {
  SHARED_HOPS,
  SHARED_TURNS,
  type SharedHopLedger,
  sharedHopLedger,
} from './shared-hop-ledger.ts';
